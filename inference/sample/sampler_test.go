package sample

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	inf = float32(math.Inf(1))
	nan = float32(math.NaN())
)

func TestGreedyTakesTheLowestOfTheBest(t *testing.T) {
	for _, c := range []struct {
		logits []float32
		want   int32
	}{
		{[]float32{1, 3, 3, 2}, 1},
		{[]float32{nan, 1, nan}, 1},
		{[]float32{-inf, -5}, 1},
		{[]float32{1, inf, inf}, 1},
		{[]float32{nan, nan}, 0},
		{[]float32{-inf, -inf}, 0},
		{nil, -1},
	} {
		assert.Equal(t, c.want, New(Params{}).Sample(c.logits), "%v", c.logits)
		hot := New(Params{Temperature: 1, TopK: 1, Typical: 0.9, TopP: 0.5, MinP: 0.1})
		assert.Equal(t, c.want, hot.Sample(c.logits), "top-k of one: %v", c.logits)
	}
	for _, p := range []Params{{Temperature: 1}, {Temperature: 1, TopP: 0.9, TopK: 3, MinP: 0.1, Typical: 0.5}} {
		assert.EqualValues(t, 1, New(p).Sample([]float32{0, inf, nan, inf}), "certain")
		assert.EqualValues(t, 0, New(p).Sample([]float32{nan, -inf, nan, nan}), "nothing possible")
	}
}

func TestTinyTemperatureIsGreedy(t *testing.T) {
	s := New(Params{Temperature: math.SmallestNonzeroFloat32})
	for range 100 {
		require.EqualValues(t, 2, s.Sample([]float32{1, 2, 3, 2.9999}))
	}
}

func TestSameSeedSameChoices(t *testing.T) {
	p := Params{Temperature: 1, TopP: 0.9, RepeatPenalty: 1.2, PenaltyWindow: 8, Seed: 7}
	run := func(s *Sampler, n int) (out []int32) {
		for i := range n {
			id := s.Sample(wave(500, i))
			s.Accept(id)
			out = append(out, id)
		}
		return out
	}
	a := New(p)
	first := run(a, 50)
	assert.Equal(t, first, run(New(p), 50))
	other := p
	other.Seed = 8
	assert.NotEqual(t, first, run(New(other), 50))

	clone, state := a.Clone(), a.State()
	restored := New(p)
	require.NoError(t, restored.Restore(state))
	want := run(a, 50)
	assert.Equal(t, want, run(clone, 50))
	assert.Equal(t, want, run(restored, 50))
	assert.Error(t, restored.Restore(State{RNG: []byte("nonsense")}))
}

// wave makes logits that differ from step to step.
func wave(n, step int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = 3 * float32(math.Sin(float64(i*(step+3))*0.37)+math.Cos(float64(i)*1.7))
	}
	return out
}

func TestPenalties(t *testing.T) {
	s := New(Params{RepeatPenalty: 2, FrequencyPenalty: 0.5, PresencePenalty: 0.25, PenaltyWindow: 4})
	for _, id := range []int32{3, 0, 1, 1, 0, -5, 99} { // 3 and the first 0 have left the window
		s.Accept(id)
	}
	logits := []float32{4, -2, 1, 8}
	got := s.adjust(logits)
	assert.Equal(t, []float32{4/2.0 - 0.5 - 0.25, -2*2 - 0.5 - 0.25, 1, 8}, got)
	assert.Equal(t, []float32{4, -2, 1, 8}, logits, "the caller's logits stay")

	plain := New(Params{RepeatPenalty: 1, PenaltyWindow: 4})
	plain.Accept(0)
	assert.Same(t, &logits[0], &plain.adjust(logits)[0], "nothing to do, nothing copied")
}

func TestFrequencyCountsEveryOccurrence(t *testing.T) {
	s := New(Params{FrequencyPenalty: 1, PenaltyWindow: 10})
	for range 3 {
		s.Accept(1)
	}
	assert.Equal(t, []float32{5, 2}, s.adjust([]float32{5, 5}))
}

func TestLogitBias(t *testing.T) {
	bias := map[int32]float32{0: -inf, 2: 1, 77: 5}
	s := New(Params{LogitBias: bias})
	bias[1] = 100 // a later change of the caller's map has no effect
	assert.Equal(t, []float32{-inf, 2, 4}, s.adjust([]float32{9, 2, 3}))
	assert.EqualValues(t, 2, s.Sample([]float32{9, 2, 3}))
}

func TestValidate(t *testing.T) {
	require.NoError(t, Params{}.Validate())
	require.NoError(t, Default().Validate())
	require.NoError(t, Params{LogitBias: map[int32]float32{1: -inf}}.Validate())
	for want, p := range map[string]Params{
		"temperature is -1":        {Temperature: -1},
		"temperature is NaN":       {Temperature: nan},
		"temperature is +Inf":      {Temperature: inf},
		"top-k is -1":              {TopK: -1},
		"top-p is 1.5":             {TopP: 1.5},
		"min-p is -0.1":            {MinP: -0.1},
		"typical is 2":             {Typical: 2},
		"repeat penalty is -1":     {RepeatPenalty: -1},
		"frequency penalty is NaN": {FrequencyPenalty: nan},
		"presence penalty is 1000": {PresencePenalty: 1000},
		"penalty window is -1":     {PenaltyWindow: -1},
		"penalty window is 100000": {PenaltyWindow: 100000},
		"bias of token 1 is NaN":   {LogitBias: map[int32]float32{1: nan}},
		"bias of token -1 is 0":    {LogitBias: map[int32]float32{-1: 0}},
		"bias of token 1 is +Inf":  {LogitBias: map[int32]float32{1: inf}},
	} {
		assert.ErrorContains(t, p.Validate(), want)
		p.Seed = 1
		assert.NotPanics(t, func() { s := New(p); s.Accept(1); s.Sample([]float32{1, 2, 3}) }, want)
	}
}

func TestNoAllocationPerToken(t *testing.T) {
	logits := wave(32000, 1)
	for name, p := range map[string]Params{
		"greedy":    {},
		"default":   Default(),
		"top-p":     {Temperature: 1, TopP: 0.9},
		"all":       {Temperature: 1, TopK: 50, TopP: 0.9, MinP: 0.01, Typical: 0.9, RepeatPenalty: 1.1, PenaltyWindow: 64},
		"penalties": {FrequencyPenalty: 1, PenaltyWindow: 64, LogitBias: map[int32]float32{5: -inf}},
	} {
		s := New(p)
		for range 100 {
			s.Accept(s.Sample(logits))
		}
		assert.Zero(t, testing.AllocsPerRun(20, func() { s.Accept(s.Sample(logits)) }), name)
	}
}

func BenchmarkSample150kTokens(b *testing.B) {
	logits := wave(150_000, 1)
	for name, p := range map[string]Params{"greedy": {}, "default": Default(), "topP": {Temperature: 1, TopP: 0.9},
		"plain": {Temperature: 1}} {
		b.Run(name, func(b *testing.B) {
			s := New(p)
			for b.Loop() {
				s.Accept(s.Sample(logits))
			}
		})
	}
}
