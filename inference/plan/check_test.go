package plan

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// Two stages, one of which has two ranks.
func mixedPlan(t testing.TB) (Shape, Plan) {
	s := Shape{Layers: 5, Heads: 8, HeadUnit: 2, KVHeads: 4, KVHeadUnit: 1, FFN: 96, FFNUnit: 32, Vocab: 100, VocabUnit: 8}
	p, err := s.Plan(Part{Range{0, 3}, []int{1, 2}, []float64{2, 1}}, Part{Range{3, 5}, []int{0}, []float64{1}})
	require.NoError(t, err)
	return s, p
}

func TestCheckAcceptsWhatIsDealt(t *testing.T) {
	s, p := mixedPlan(t)
	require.NoError(t, p.Check(s, 3))
	require.Equal(t, KindMixed, p.Kind())
	require.Equal(t, 3, p.World())
	stage, shard, ok := p.Of(2)
	require.True(t, ok)
	require.Zero(t, stage)
	require.Equal(t, p.Stages[0].Shards[1], shard)
	_, _, ok = p.Of(3)
	require.False(t, ok)
}

// A plan comes from another machine: whatever is wrong with it is found.
func TestCheckRefuses(t *testing.T) {
	for name, spoil := range map[string]func(p *Plan, s *Shape){
		"no stages":         func(p *Plan, _ *Shape) { p.Stages = nil },
		"too many stages":   func(p *Plan, _ *Shape) { p.Stages = append(p.Stages, p.Stages...) },
		"layer missing":     func(p *Plan, _ *Shape) { p.Stages[1].Layers.Lo = 4 },
		"layer twice":       func(p *Plan, _ *Shape) { p.Stages[1].Layers.Lo = 2 },
		"last layer":        func(p *Plan, _ *Shape) { p.Stages[1].Layers.Hi = 4 },
		"layer too many":    func(p *Plan, _ *Shape) { p.Stages[1].Layers.Hi = 6 },
		"empty stage":       func(p *Plan, _ *Shape) { p.Stages[0].Layers.Hi = 0 },
		"rank twice":        func(p *Plan, _ *Shape) { p.Stages[1].Ranks[0] = 1 },
		"rank too high":     func(p *Plan, _ *Shape) { p.Stages[1].Ranks[0] = 3 },
		"negative rank":     func(p *Plan, _ *Shape) { p.Stages[1].Ranks[0] = -1 },
		"ranks unordered":   func(p *Plan, _ *Shape) { p.Stages[0].Ranks = []int{2, 1} },
		"no ranks":          func(p *Plan, _ *Shape) { p.Stages[0].Ranks, p.Stages[0].Shards = nil, nil },
		"shard missing":     func(p *Plan, _ *Shape) { p.Stages[0].Shards = p.Stages[0].Shards[:1] },
		"head missing":      func(p *Plan, _ *Shape) { p.Stages[0].Shards[0].Heads.Hi -= 2 },
		"head twice":        func(p *Plan, _ *Shape) { p.Stages[0].Shards[1].Heads.Lo -= 2 },
		"other KV heads":    func(p *Plan, _ *Shape) { p.Stages[0].Shards[0].KVHeads.Hi++ },
		"columns missing":   func(p *Plan, _ *Shape) { p.Stages[1].Shards[0].FFN.Hi-- },
		"columns reversed":  func(p *Plan, _ *Shape) { p.Stages[1].Shards[0].FFN = Range{96, 0} },
		"rows missing":      func(p *Plan, _ *Shape) { p.Stages[0].Shards[0].Vocab.Hi -= 8 },
		"inside a block":    func(_ *Plan, s *Shape) { s.FFNUnit = 48 },
		"inside head block": func(_ *Plan, s *Shape) { s.HeadUnit = 4; s.KVHeadUnit = 4 },
	} {
		s, p := mixedPlan(t)
		spoil(&p, &s)
		require.Error(t, p.Check(s, 3), name)
	}
	s, p := mixedPlan(t)
	for _, world := range []int{-1, 0, 2, 4, MaxRanks + 1} {
		require.Error(t, p.Check(s, world))
	}
}

// The form that travels stays as it is: other versions read it.
func TestPlanJSON(t *testing.T) {
	_, p := mixedPlan(t)
	text, err := json.Marshal(p)
	require.NoError(t, err)
	require.Equal(t, `{"stages":[`+
		`{"layers":[0,3],"ranks":[1,2],"shards":[`+
		`{"heads":[0,6],"kv_heads":[0,3],"ffn":[0,64],"vocab":[0,72]},`+
		`{"heads":[6,8],"kv_heads":[3,4],"ffn":[64,96],"vocab":[72,100]}]},`+
		`{"layers":[3,5],"ranks":[0],"shards":[{"heads":[0,8],"kv_heads":[0,4],"ffn":[0,96],"vocab":[0,100]}]}]}`, string(text))
	back, err := Decode(text)
	require.NoError(t, err)
	require.Equal(t, p, back)
}

// The largest plan of real numbers is below the limit.
func TestLargestPlanFits(t *testing.T) {
	s := Shape{Layers: 4096, Heads: 1 << 17, HeadUnit: 1, KVHeads: 1 << 17, KVHeadUnit: 1, FFN: 1 << 17, FFNUnit: 1, Vocab: 1 << 22, VocabUnit: 1}
	shares := make([]float64, MaxRanks)
	ranks := make([]int, MaxRanks)
	for i := range shares {
		shares[i], ranks[i] = 1, i
	}
	p, err := s.Plan(Part{Range{0, 4096}, ranks, shares})
	require.NoError(t, err)
	text, err := json.Marshal(p)
	require.NoError(t, err)
	require.Less(t, len(text), MaxPlanBytes)
	_, err = Decode(append(text, make([]byte, MaxPlanBytes)...))
	require.ErrorContains(t, err, "at most")
}

func FuzzDecode(f *testing.F) {
	s, p := mixedPlan(f)
	text, err := json.Marshal(p)
	require.NoError(f, err)
	for _, seed := range []string{string(text), `{}`, `{"stages":[{"layers":[0],"ranks":[0]}]}`, `{"stages":[{"layers":[0,5],"ranks":[0],"shards":[{"heads":[-9223372036854775808,9223372036854775807]}]}]}`, `null`, `{"stages":[null]}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := Decode(b)
		if err != nil {
			return
		}
		if p.Check(s, 3) != nil {
			return
		}
		again, err := json.Marshal(p)
		require.NoError(t, err)
		back, err := Decode(again)
		require.NoError(t, err)
		require.NoError(t, back.Check(s, 3))
	})
}

// More ranks than KV heads: query heads are dealt out, each KV head is where its
// query heads are.
func TestRanksShareKVHeads(t *testing.T) {
	s := Shape{Layers: 2, Heads: 32, HeadUnit: 2, KVHeads: 4, KVHeadUnit: 1, FFN: 4096, FFNUnit: 32, Vocab: 32000, VocabUnit: 8}
	p, err := s.Plan(Part{Range{0, 2}, []int{0, 1, 2, 3, 4, 5}, []float64{4, 1, 1, 1, 1, 4}})
	require.NoError(t, err)
	require.NoError(t, p.Check(s, 6))
	shared := 0
	for i, sh := range p.Stages[0].Shards[1:] {
		if sh.KVHeads.Lo < p.Stages[0].Shards[i].KVHeads.Hi {
			shared++
		}
	}
	require.Positive(t, shared, "six ranks cannot have four KV heads to themselves")
}

// Qwen2.5-7B's 28 heads of 128 in K-quants: blocks of two heads, groups of seven.
// Only the middle of the heads is the end of both.
func TestBlocksAcrossGroupsDivideByTwo(t *testing.T) {
	s := Shape{Layers: 28, Heads: 28, HeadUnit: 2, KVHeads: 4, KVHeadUnit: 2, FFN: 18944, FFNUnit: 256, Vocab: 152064, VocabUnit: 8}
	_, err := s.Deal([]float64{1, 1})
	require.NoError(t, err)
	for world := 3; world <= 8; world++ {
		shares := make([]float64, world)
		for i := range shares {
			shares[i] = 1
		}
		_, err = s.Deal(shares)
		require.ErrorIs(t, err, ErrTooManyRanks)
	}
}

// Whatever heads a model has and however they may be cut, what is dealt passes
// the check.
func TestDealtHeadsPassCheck(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	dealt := 0
	for range 3000 {
		group, unit := 1+rng.IntN(16), 1+rng.IntN(4)
		s := Shape{Layers: 1, KVHeads: 1 + rng.IntN(16), HeadUnit: unit, FFN: 4096, FFNUnit: 32, Vocab: 320, VocabUnit: 8}
		s.Heads, s.KVHeadUnit = s.KVHeads*group, 1
		for s.KVHeadUnit*group%unit != 0 && s.KVHeadUnit < s.KVHeads {
			s.KVHeadUnit++
		}
		world := 1 + rng.IntN(16)
		part := Part{Layers: Range{0, 1}}
		for r := range world {
			part.Ranks, part.Shares = append(part.Ranks, r), append(part.Shares, 0.01+rng.Float64())
		}
		p, err := s.Plan(part)
		if err != nil {
			require.ErrorIs(t, err, ErrTooManyRanks)
			continue
		}
		dealt++
		require.NoError(t, p.Check(s, world))
	}
	require.Greater(t, dealt, 1000)
}
