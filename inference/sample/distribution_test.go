package sample

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// reference computes the distribution that params ask for, with full sorts and no shortcuts.
func reference(logits []float32, p Params) map[int32]float64 {
	var c []candidate
	for i, v := range logits {
		c = append(c, candidate{id: int32(i), logit: v})
	}
	slices.SortStableFunc(c, better)
	if p.TopK > 0 && p.TopK < len(c) {
		c = c[:p.TopK]
	}
	softmax := func(t float64) {
		var sum float64
		for i := range c {
			c[i].w = math.Exp(float64(c[i].logit-logits[0]) / t)
			sum += c[i].w
		}
		for i := range c {
			c[i].w /= sum
		}
	}
	reach := func(p float32) {
		var sum float64
		for i := range c {
			if sum += c[i].w; sum >= float64(p) {
				c = c[:i+1]
				return
			}
		}
	}
	if p.Typical > 0 && p.Typical < 1 {
		softmax(1)
		var h float64
		for _, x := range c {
			h -= x.w * math.Log(x.w)
		}
		slices.SortStableFunc(c, func(a, b candidate) int {
			da, db := math.Abs(math.Log(a.w)+h), math.Abs(math.Log(b.w)+h)
			if da < db {
				return -1
			}
			if da > db {
				return 1
			}
			return 0
		})
		reach(p.Typical)
		slices.SortStableFunc(c, better)
	}
	if p.TopP > 0 && p.TopP < 1 {
		softmax(1)
		reach(p.TopP)
	}
	if p.MinP > 0 {
		softmax(1)
		top := c[0].w
		c = slices.DeleteFunc(c, func(x candidate) bool { return x.w < float64(p.MinP)*top*(1-1e-12) })
	}
	softmax(float64(p.Temperature))
	out := map[int32]float64{}
	for _, x := range c {
		out[x.id] = x.w
	}
	return out
}

// chiSquare returns Pearson's statistic and the value it exceeds with probability 1e-6 when the counts do follow the
// expectation (Wilson and Hilferty's approximation).
func chiSquare(counts map[int32]int, want map[int32]float64, n int) (stat, bound float64, degrees int) {
	restCount, restWant := n, 1.0
	degrees = -1
	for id, p := range want {
		if p*float64(n) < 10 { // too rare to test alone: pooled
			continue
		}
		d := float64(counts[id]) - p*float64(n)
		stat += d * d / (p * float64(n))
		restCount -= counts[id]
		restWant -= p
		degrees++
	}
	if restWant*float64(n) >= 10 {
		d := float64(restCount) - restWant*float64(n)
		stat += d * d / (restWant * float64(n))
		degrees++
	}
	const z = 4.753424 // of the normal distribution, one-sided 1e-6
	k := float64(max(degrees, 1))
	x := 1 - 2/(9*k) + z*math.Sqrt(2/(9*k))
	return stat, k * x * x * x, degrees
}

// Every combination must draw from the reference distribution: nothing outside its support, and frequencies within a
// chi-square test at significance 1e-6 each (the seeds are fixed, so a pass stays a pass).
func TestDistributions(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, size := range []int{2, 10, 40, 600} {
		n := 10_000
		if size > 100 {
			n = 2000
		}
		logits := make([]float32, size)
		for i := range logits {
			logits[i] = float32(rng.NormFloat64() * 2)
		}
		logits[size/2] = logits[0] // a tie
		for _, p := range []Params{
			{Temperature: 1}, {Temperature: 0.5}, {Temperature: 2}, {Temperature: 1, TopK: 1}, {Temperature: 1, TopK: 7},
			{Temperature: 1, TopP: 0.5}, {Temperature: 1.5, TopP: 0.95}, {Temperature: 1, TopP: 1e-9}, {Temperature: 3, TopP: 0.7},
			{Temperature: 1, MinP: 0.1}, {Temperature: 1, MinP: 1}, {Temperature: 1, Typical: 0.3}, {Temperature: 1, Typical: 0.95},
			{Temperature: 0.8, TopK: 40, TopP: 0.95, MinP: 0.05}, {Temperature: 0.7, TopK: 20, TopP: 0.8, Typical: 0.7},
		} {
			t.Run(fmt.Sprintf("%d/%+v", size, p), func(t *testing.T) {
				p.Seed = 42
				want := reference(logits, p)
				counts := map[int32]int{}
				s := New(p)
				for range n {
					counts[s.Sample(logits)]++
				}
				for id := range counts {
					require.Contains(t, want, id, "drawn, but filtered out")
				}
				stat, bound, degrees := chiSquare(counts, want, n)
				assert.LessOrEqual(t, stat, bound, "%d degrees of freedom", degrees)
			})
		}
	}
}

// The test above must notice a distribution that is slightly off.
func TestChiSquareNotices(t *testing.T) {
	const n = 40_000
	logits := []float32{1, 0.5, 0, -0.5}
	s := New(Params{Temperature: 1.1, Seed: 3})
	counts := map[int32]int{}
	for range n {
		counts[s.Sample(logits)]++
	}
	stat, bound, _ := chiSquare(counts, reference(logits, Params{Temperature: 1}), n)
	assert.Greater(t, stat, bound)
}

func TestSelectionsAgreeWithSorting(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 300 {
		c := make([]candidate, 1+rng.IntN(600))
		logits := make([]float32, len(c))
		for i := range c {
			logits[i] = float32(rng.IntN(50)) // many ties
			c[i] = candidate{id: int32(i), logit: logits[i]}
		}
		sorted := slices.Clone(c)
		slices.SortFunc(sorted, better)
		k := 1 + rng.IntN(len(c))

		if len(c) > 1 {
			i, j := partition(c)
			require.True(t, i > j && i > 0 && j < len(c)-1 && i <= j+2)
			worst, best := slices.MaxFunc(c[:j+1], better), slices.MinFunc(c[i:], better)
			require.Negative(t, better(worst, best))
		}

		s := New(Params{TopK: k})
		s.keep(logits)
		if k < len(logits) {
			require.Equal(t, sorted[:k], s.kept)
		}
		require.Equal(t, sorted[0], s.kept[0])
	}
}
