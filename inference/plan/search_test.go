package plan

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// dense is a model of the shape of Llama 3.1 8B in Q4_0, but for its layers.
func dense(layers int) *Model {
	m := &Model{
		Name:  "dense",
		Shape: Shape{Layers: layers, Heads: 32, HeadUnit: 1, KVHeads: 8, KVHeadUnit: 1, FFN: 14336, FFNUnit: 32, Vocab: 128256, VocabUnit: 8},
		Dim:   4096, MaxContext: 1 << 17, Scratch: 4 * (4*4096 + 3*2*4096 + 3*14336),
		Embed: q4(4096 * 128256), Output: q4(4096 * 128256), Other: Weights{4 * 4096, 4096},
	}
	for range layers {
		m.Layers = append(m.Layers, Layer{
			Heads: q4(2 * 4096 * 4096), KVHeads: q4(2 * 4096 * 1024), FFN: q4(3 * 4096 * 14336),
			Attention: Weights{4 * 4096, 4096}, Router: Weights{4 * 4096, 4096}, KVWidth: 256, Score: 256,
		})
	}
	return m
}

func q4(elements float64) Weights { return Weights{elements / 32 * 18, elements} }

// sparse is a model with experts and a latent cache, its first layer dense.
func sparse(layers int) *Model {
	m := dense(layers)
	m.Name, m.Experts, m.Used = "sparse", 64, 6
	m.Shape = Shape{Layers: layers, Heads: 128, HeadUnit: 2, KVHeads: 128, KVHeadUnit: 2, FFN: 2048, FFNUnit: 256, Vocab: 129280, VocabUnit: 8}
	for i := range m.Layers {
		m.Layers[i] = Layer{Heads: q4(4096 * 4096), Attention: q4(4096 * 2112), FFN: q4(3 * 4096 * 2048), Latent: 576, Score: 1088}
		if i > 0 {
			m.Layers[i].Experts, m.Layers[i].Router = q4(64*3*4096*2048), Weights{4 * 4096 * 64, 4096 * 64}
		}
	}
	return m
}

// mac is a node of about an M4 Max.
func mac(name string, memory int64) Node {
	return Node{Name: name, Memory: memory, Bandwidth: 490e9, Compute: 11e12, Launch: 10e-6, Layer: 50e-6}
}

func macs(n int, memory int64) (nodes []Node) {
	for i := range n {
		nodes = append(nodes, mac(fmt.Sprintf("Mac %d", i+1), memory))
	}
	return nodes
}

var (
	rdmaLink = Link{Latency: 20e-6, Bandwidth: 8e9}
	wifiLink = Link{Latency: 3e-3, Bandwidth: 60e6}
)

func random(rng *rand.Rand, n int, most float64) (nodes []Node) {
	for i := range n {
		nodes = append(nodes, Node{
			Name: fmt.Sprint("node ", i), Memory: int64(rng.Float64() * most), Bandwidth: 5e10 + rng.Float64()*8e11,
			Compute: 1e12 + rng.Float64()*2e13, Launch: rng.Float64() * 1e-4, Layer: rng.Float64() * 1e-4,
		})
	}
	return nodes
}

// requireSound checks all that a plan promises: every part of the model in one
// place, and no node beyond its memory.
func requireSound(t *testing.T, s *search, c Candidate) {
	t.Helper()
	require.NoError(t, c.Plan.Check(s.m.Shape, len(c.Nodes)))
	require.Equal(t, c.Kind, c.Plan.Kind())
	layers := make([]int, len(s.m.Layers))
	for i, st := range c.Plan.Stages {
		for l := st.Layers.Lo; l < st.Layers.Hi; l++ {
			layers[l]++
		}
		requireOnce(t, "heads", st.Shards, func(sh Shard) Range { return sh.Heads }, s.m.Shape.heads())
		requireOnce(t, "columns", st.Shards, func(sh Shard) Range { return sh.FFN }, s.m.Shape.FFN)
		if i == 0 || i == len(c.Plan.Stages)-1 {
			requireOnce(t, "vocabulary", st.Shards, func(sh Shard) Range { return sh.Vocab }, s.m.Shape.Vocab)
		}
		requireKV(t, s.m.Shape, st.Shards)
	}
	for l, n := range layers { // plain comparisons in what runs a million times
		if n != 1 {
			t.Fatalf("layer %d is in %d stages", l, n)
		}
	}
	require.Len(t, c.Memory, len(c.Nodes))
	for r, mem := range c.Memory {
		require.LessOrEqual(t, mem.Total(), float64(s.nodes[c.Nodes[r]].Memory))
	}
	require.Positive(t, c.Decode)
	require.Positive(t, c.Prefill)
	require.Positive(t, c.FirstToken)
	require.GreaterOrEqual(t, c.Answer, c.FirstToken)
	if s.u.Leader >= 0 {
		require.Equal(t, s.u.Leader, c.Nodes[0])
	}
}

func requireOnce(t *testing.T, what string, shards []Shard, of func(Shard) Range, n int) {
	t.Helper()
	next := 0
	for _, sh := range shards {
		if of(sh).Lo != next || of(sh).Hi <= next {
			t.Fatalf("%s: %v follows %d", what, of(sh), next)
		}
		next = of(sh).Hi
	}
	if next != n {
		t.Fatalf("%s: %d of %d", what, next, n)
	}
}

// requireKV checks that each query head's KV head is on its rank, that no other
// KV head is, and that attention sees equally many query heads for each.
func requireKV(t *testing.T, s Shape, shards []Shard) {
	t.Helper()
	group := s.heads() / s.KVHeads
	for _, sh := range shards {
		used := make([]int, s.KVHeads)
		for h := sh.Heads.Lo; h < sh.Heads.Hi; h++ {
			used[h/group]++
		}
		for kv, n := range used {
			if want := used[sh.KVHeads.Lo]; sh.KVHeads.Contains(kv) && n != want || !sh.KVHeads.Contains(kv) && n != 0 {
				t.Fatalf("KV head %d has %d query heads on a rank of %v", kv, n, sh)
			}
		}
	}
}

// Every number of layers and of nodes, random speeds and memory: what is planned
// is sound, and more than a few are.
func TestEveryLayerCountAndWorldSize(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	sound, refused := map[Kind]int{}, map[string]int{}
	for layers := 1; layers <= 130; layers++ {
		for world := 1; world <= 16; world++ {
			m := dense(layers)
			if (layers+world)%2 == 0 {
				m = sparse(layers)
			}
			nodes := random(rng, world, 3*m.Bytes()/float64(world)+4e9)
			u := Usage{Context: 1024 + rng.IntN(8192), Sequences: 1 + rng.IntN(4), Leader: rng.IntN(world+1) - 1}.Defaults(m)
			s, err := newSearch(m, nodes, Uniform(world, rdmaLink), u)
			require.NoError(t, err)
			order := s.sorted(bySpeed)
			candidates := []Candidate{s.solo(max(0, u.Leader))}
			if world > 1 {
				candidates = append(candidates, s.tensorParallel(order), s.stages(KindPipeline, evenly(order, world)))
			}
			if world > 2 {
				candidates = append(candidates, s.stages(KindMixed, evenly(order, 2+rng.IntN(world-2))))
			}
			for _, c := range candidates {
				if c.Refused != nil {
					refused[c.Refused.Code]++
					continue
				}
				requireSound(t, s, c)
				sound[c.Kind]++
			}
		}
	}
	for _, k := range kindOrder[1:] {
		require.Greater(t, sound[k], 400, "%v, refused %v", sound, refused)
	}
	require.Greater(t, sound[KindSolo], 60, "%v, refused %v", sound, refused)
}

// Whatever is chosen from is sound, and the same for the same question.
func TestChooseIsSoundAndRepeats(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	for i := range 60 {
		n := 1 + rng.IntN(9)
		m := dense(1 + rng.IntN(80))
		if i%2 == 0 {
			m = sparse(1 + rng.IntN(80))
		}
		nodes := random(rng, n, 2*m.Bytes())
		net := Uniform(n, rdmaLink)
		for a := range net {
			for b := a + 1; b < n; b++ {
				net[a][b] = Link{Latency: 1e-5 + rng.Float64()*rng.Float64()*1e-3, Bandwidth: 1e8 + rng.Float64()*8e9}
				if rng.IntN(12) == 0 {
					net[a][b] = Link{}
				}
			}
		}
		u := Usage{Leader: rng.IntN(n+1) - 1, Context: 2048, Sequences: 1 + rng.IntN(3)}.Defaults(m)
		c, err := Choose(m, nodes, net, u)
		require.NoError(t, err)
		s, err := newSearch(m, nodes, net, u)
		require.NoError(t, err)
		for i, x := range c.Candidates {
			if x.Refused == nil {
				requireSound(t, s, x)
				require.Equal(t, x.Prediction, x.Plan.Predict(m, nodes, net, x.Nodes, u))
				require.Equal(t, x.Memory, x.Plan.Memory(m, u))
			} else {
				require.NotEmpty(t, x.Refused.Text)
				require.NotEqual(t, i, c.Best)
			}
		}
		require.NotEmpty(t, c.Reasons)
		first, err := json.Marshal(c)
		require.NoError(t, err)
		again, err := Choose(m, nodes, net, u)
		require.NoError(t, err)
		second, err := json.Marshal(again)
		require.NoError(t, err)
		require.Equal(t, string(first), string(second))
	}
}

// The stages that partition finds are the best there are.
func TestPartitionIsBest(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 16))
	found := 0
	for range 60 {
		m := sparse(2 + rng.IntN(9))
		m.Layers[len(m.Layers)-1].FFN = q4(1e9)
		nodes := random(rng, 3, 1.2*m.Bytes())
		u := Usage{Leader: -1}.Defaults(m)
		s, err := newSearch(m, nodes, Uniform(3, rdmaLink), u)
		require.NoError(t, err)
		groups := [][]int{{0}, {1}, {2}}
		p, err := m.Shape.Plan(Part{Ranks: []int{1}}, Part{Ranks: []int{2}}, Part{Ranks: []int{0}})
		require.NoError(t, err)
		var teams []*team
		for i, g := range groups {
			teams = append(teams, newTeam(m, nodes, s.net, g, p.Stages[i].Shards))
		}
		for _, g := range []goal{leastSum, leastSlowest} {
			cost := func(cut []Range) float64 {
				total := 0.0
				for i, r := range cut {
					sums, least := s.times(teams[i], i == 0, i == 2)
					total = g.join(total, least+(sums[r.Hi]-sums[r.Lo]))
				}
				return total
			}
			least, any := 0.0, false
			for a := 1; a < len(m.Layers)-1; a++ {
				for b := a + 1; b < len(m.Layers); b++ {
					cut := []Range{{0, a}, {a, b}, {b, len(m.Layers)}}
					fits := true
					for i, r := range cut {
						fits = fits && r.Hi <= s.room(teams[i], groups[i], i == 0, i == 2)[r.Lo]
					}
					if t := cost(cut); fits && (!any || t < least) {
						least, any = t, true
					}
				}
			}
			cut, ok := s.partition(teams, groups, g)
			require.Equal(t, any, ok)
			if ok {
				found++
				require.InEpsilon(t, least, cost(cut), 1e-12)
			}
		}
	}
	require.Greater(t, found, 20)
}

func BenchmarkChoose16Nodes(b *testing.B) {
	m := sparse(61)
	nodes := random(rand.New(rand.NewPCG(1, 2)), 16, m.Bytes())
	net := Uniform(16, rdmaLink)
	u := Usage{Leader: -1}.Defaults(m)
	for b.Loop() {
		if _, err := Choose(m, nodes, net, u); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkChoose6Nodes(b *testing.B) {
	m := dense(80)
	nodes := random(rand.New(rand.NewPCG(1, 2)), 6, m.Bytes())
	net := Uniform(6, rdmaLink)
	u := Usage{Leader: -1}.Defaults(m)
	for b.Loop() {
		if _, err := Choose(m, nodes, net, u); err != nil {
			b.Fatal(err)
		}
	}
}
