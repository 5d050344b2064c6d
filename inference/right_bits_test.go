package inference

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"testing"

	"daisy/inference/ggml"
	"daisy/inference/gguf"
	"daisy/inference/model"
	"daisy/inference/modeltest"
	"daisy/inference/plan"
	"daisy/rdma"
	"daisy/rdma/mem"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// watched is what one rank saw in a step.
type watched struct {
	sums   [][sha256.Size]byte // of the residual stream, each time that the ranks of a stage met
	chosen [][]int32           // the experts, for each layer that has any
	stage  int
}

// watch computes tokens by the plan as rank.compute does, in steps of chunk tokens,
// and returns what each rank saw.
func watch(t *testing.T, path string, tokens []int32, p plan.Plan, chunk int) []watched {
	t.Helper()
	saw := make([]watched, p.World())
	var g errgroup.Group
	for i, tr := range mem.New(p.World()) {
		g.Go(func() (err error) {
			group := rdma.NewGroup(tr, 1)
			defer group.Close()
			defer func() {
				if err != nil {
					group.Abort(err)
				}
			}()
			saw[i], err = watchRank(t.Context(), path, tokens, p, group, chunk)
			return err
		})
	}
	require.NoError(t, g.Wait())
	return saw
}

func watchRank(ctx context.Context, path string, tokens []int32, p plan.Plan, group *rdma.Group, chunk int) (saw watched, err error) {
	f, err := gguf.Open(path)
	if err != nil {
		return saw, err
	}
	defer f.Close()
	arch, err := model.New(f)
	if err != nil {
		return saw, err
	}
	info := Info{ContextLength: len(tokens), Threads: 1, Rank: group.Rank(), WorldSize: group.WorldSize()}
	r, err := newRank(ctx, f, arch, p, Options{Group: group, Plan: &p}, &info)
	if err != nil {
		return saw, err
	}
	defer r.close()
	saw.stage = r.stage
	choices := map[string]ggml.Tensor{} // of the last pass
	var buffers []*ggml.Buffer
	defer func() {
		for _, b := range buffers {
			b.Close()
		}
	}()
	r.mem.Chosen = func(layer string, x ggml.Tensor) error {
		b, err := r.backend.Memory().NewBuffer(x.Bytes())
		if err != nil {
			return err
		}
		choices[layer], buffers = x, append(buffers, b)
		return b.Place(x)
	}
	for start := 0; start < len(tokens); start += chunk {
		n := min(chunk, len(tokens)-start)
		s := &step{runs: []model.Run{{Start: start, N: n, KV: info.ContextLength}}, tokens: tokens[start : start+n], outputs: []int32{int32(n - 1)}}
		r.forget() // so that the choices are this pass's
		rec, err := r.pass(s)
		if err != nil {
			return saw, err
		}
		r.fill(s)
		if err := r.takeOver(ctx, rec); err != nil {
			return saw, err
		}
		for i, seg := range rec.Segments {
			if err := r.backend.Compute(seg.Graph); err != nil {
				return saw, err
			}
			if !seg.Sum.Valid() {
				continue
			}
			sum := rec.sums[i]
			sum.pull()
			if err := r.team.AllReduce(ctx, sum.values); err != nil {
				return saw, err
			}
			saw.sums = append(saw.sums, sha256.Sum256(bytesOf(sum.values)))
			sum.push(seg.Len)
		}
		for _, layer := range slices.Sorted(maps.Keys(choices)) {
			ids := make([]int32, choices[layer].Bytes()/4)
			choices[layer].Get(bytesOf(ids), 0)
			saw.chosen = append(saw.chosen, ids)
		}
		if r.last() {
			rec.logits.pull()
			err = r.gather(ctx, rec.logits.values, 1)
		} else if err = r.handOn(ctx, rec); err == nil && info.Rank == 0 {
			err = r.collect(ctx, 1)
		}
		if err != nil {
			return saw, err
		}
	}
	return saw, group.Barrier(ctx)
}

// requireAlike fails unless the ranks of a stage saw the same, and returns the
// experts chosen.
func requireAlike(t *testing.T, saw []watched, p plan.Plan) (chosen [][]int32) {
	t.Helper()
	for i, s := range p.Stages {
		first := saw[s.Ranks[0]]
		require.Equal(t, i, first.stage)
		if len(s.Ranks) > 1 {
			require.Greater(t, len(first.sums), s.Layers.Len())
		}
		for _, r := range s.Ranks[1:] {
			require.Equal(t, first.sums, saw[r].sums, "ranks %d and %d", s.Ranks[0], r)
			require.Equal(t, first.chosen, saw[r].chosen, "ranks %d and %d", s.Ranks[0], r)
		}
		chosen = append(chosen, first.chosen...)
	}
	return chosen
}

// All ranks of a stage have the same bits of the residual stream wherever they
// meet, so they may compute alike what each needs.
func TestRanksOfAStageHaveTheSameBits(t *testing.T) {
	for _, kind := range []gguf.Type{gguf.F32, gguf.Q4_0} {
		path := tiny(t, modeltest.Options{Type: kind, Layers: 4, Heads: 8, KVHeads: 4, FFN: 256})
		var tokens []int32
		for i := range int32(200) {
			tokens = append(tokens, i*31%250)
		}
		for _, p := range manyPlans(t, path) {
			t.Run(fmt.Sprint(kind, planName(p)), func(t *testing.T) {
				requireAlike(t, watch(t, path, tokens, p, 64), p)
			})
		}
	}
}

// Ranks of a stage choose the same experts, each for itself.
func TestRanksChooseTheSameExperts(t *testing.T) {
	for _, name := range []string{"gpt-oss", "qwen3moe", "deepseek2", "deepseek3"} {
		t.Run(name, func(t *testing.T) {
			g := openGolden(t, name)
			worlds := []int{2, 3}
			if name[0] == 'd' {
				worlds = worlds[:1]
			}
			for _, world := range worlds {
				p, err := evenPlan(t, g.path, world)
				require.NoError(t, err)
				chosen := requireAlike(t, watch(t, g.path, g.tokens, p, 7), p)
				require.NotEmpty(t, chosen)
				for _, ids := range chosen[:1] {
					require.Greater(t, len(slices.Compact(slices.Sorted(slices.Values(ids)))), 2, "a choice that does not depend on the token")
				}
			}
		})
	}
}

// evenPlan shares all layers evenly, where they can be.
func evenPlan(t *testing.T, path string, world int) (plan.Plan, error) {
	t.Helper()
	f, err := gguf.Open(path)
	require.NoError(t, err)
	defer f.Close()
	arch, err := model.New(f)
	require.NoError(t, err)
	s := model.Shape(f, arch)
	part := plan.Part{Layers: plan.Range{Hi: s.Layers}}
	for r := range world {
		part.Ranks, part.Shares = append(part.Ranks, r), append(part.Shares, 1)
	}
	return s.Plan(part)
}
