// Package plan deals a model's parts out to the ranks of a group. Everything in
// it is a pure function of a model's shape and the ranks' shares, so all ranks
// that know the same numbers know the same plan.
package plan

import (
	"errors"
	"fmt"
	"math"
)

// ErrTooManyRanks: the model has fewer parts than ranks; leave ranks out.
var ErrTooManyRanks = errors.New("too many ranks for this model")

// Range is the half-open interval [Lo, Hi).
type Range struct{ Lo, Hi int }

// Len is the number of elements.
func (r Range) Len() int { return r.Hi - r.Lo }

// Scale multiplies both ends: a range of heads becomes one of rows.
func (r Range) Scale(by int) Range { return Range{r.Lo * by, r.Hi * by} }

// Shard is what one rank holds of each layer and of the vocabulary.
type Shard struct {
	KVHeads Range // KV heads, with the query heads that belong to them
	FFN     Range // feed-forward columns
	Vocab   Range // rows of the embedding and output matrices
}

// Shape is what can be dealt out. Each part is cut only at multiples of its
// unit, where quantisation blocks begin.
type Shape struct {
	KVHeads, KVHeadUnit int
	FFN, FFNUnit        int
	Vocab, VocabUnit    int
	// Weights that go with one KV head and with one feed-forward column, in all
	// layers: what balances an uneven deal of heads.
	HeadWeights, FFNWeights int
}

// Whole is the shard of a single rank.
func (s Shape) Whole() Shard {
	return Shard{Range{0, s.KVHeads}, Range{0, s.FFN}, Range{0, s.Vocab}}
}

// TensorParallel deals every layer to all ranks in proportion to shares (by
// rank, all positive). Heads are few, so feed-forward columns even out what the
// heads could not.
func TensorParallel(s Shape, shares []float64) ([]Shard, error) {
	heads, err := Deal(s.KVHeads, s.KVHeadUnit, shares)
	if err != nil {
		return nil, fmt.Errorf("%d KV heads in units of %d: %w", s.KVHeads, s.KVHeadUnit, err)
	}
	vocab, err := Deal(s.Vocab, s.VocabUnit, shares)
	if err != nil {
		return nil, fmt.Errorf("%d vocabulary rows: %w", s.Vocab, err)
	}
	ffn, err := Deal(s.FFN, s.FFNUnit, s.ffnShares(heads, shares))
	if err != nil {
		return nil, fmt.Errorf("%d feed-forward columns in units of %d: %w", s.FFN, s.FFNUnit, err)
	}
	shards := make([]Shard, len(shares))
	for i := range shards {
		shards[i] = Shard{heads[i], ffn[i], vocab[i]}
	}
	return shards, nil
}

// ffnShares are the shares of the feed-forward columns that bring each rank's
// weights nearest to its share of the layer.
func (s Shape) ffnShares(heads []Range, shares []float64) []float64 {
	if s.FFNWeights <= 0 {
		return shares
	}
	sum := 0.0
	for _, x := range shares {
		sum += x
	}
	layer := float64(s.KVHeads*s.HeadWeights + s.FFN*s.FFNWeights)
	least := float64(s.FFNUnit * s.FFNWeights)
	out := make([]float64, len(shares))
	for i, x := range shares {
		out[i] = max(least, layer*x/sum-float64(heads[i].Len()*s.HeadWeights))
	}
	return out
}

// Deal cuts n elements into one range for each share, in order and without
// gaps, in proportion to the shares by largest remainder. Cuts fall on multiples
// of unit, every range is non-empty, and the last takes an incomplete unit.
func Deal(n, unit int, shares []float64) ([]Range, error) {
	sum := 0.0
	for _, x := range shares {
		if !(x > 0) || math.IsInf(x, 0) {
			return nil, fmt.Errorf("a share of %v is not a positive number", x)
		}
		sum += x
	}
	if n < 1 || unit < 1 {
		return nil, fmt.Errorf("nothing to deal: %d in units of %d", n, unit)
	}
	units := (n + unit - 1) / unit
	if len(shares) == 0 || units < len(shares) {
		return nil, fmt.Errorf("%d ranks: %w", len(shares), ErrTooManyRanks)
	}
	// Every rank gets one unit; the rest goes where most is missing, one by one
	// in rank order for equal claims.
	got := make([]int, len(shares))
	left := units
	for i, x := range shares {
		got[i] = max(1, int(float64(units)*x/sum))
		left -= got[i]
	}
	claim := func(i int) float64 { return float64(units)*shares[i]/sum - float64(got[i]) }
	for ; left > 0; left-- {
		best := 0
		for i := range got {
			if claim(i) > claim(best) {
				best = i
			}
		}
		got[best]++
	}
	for ; left < 0; left++ { // tiny shares were rounded up to one unit
		most := -1
		for i := range got {
			if got[i] > 1 && (most < 0 || claim(i) < claim(most)) {
				most = i
			}
		}
		got[most]--
	}
	ranges := make([]Range, len(shares))
	lo := 0
	for i, g := range got {
		ranges[i] = Range{lo * unit, min(n, (lo+g)*unit)}
		lo += g
	}
	return ranges, nil
}
