package plan

import (
	"errors"
	"fmt"
	"math"
)

// ErrTooManyRanks: the model has fewer parts than ranks; leave ranks out.
var ErrTooManyRanks = errors.New("too many ranks for this model")

// Deal cuts n elements into one range for each share, in order and without gaps,
// so that the rank whose part is largest for its share has as little as can be.
// Cuts fall on multiples of unit, every range is non-empty, and the last takes an
// incomplete unit. ErrTooManyRanks when there are fewer units than shares.
func Deal(n, unit int, shares []float64) ([]Range, error) {
	sum := 0.0
	for _, x := range shares {
		if !(x > 0) || math.IsInf(x, 0) {
			return nil, fmt.Errorf("a share of %v is not a positive number", x)
		}
		sum += x
	}
	if math.IsInf(sum, 0) {
		return nil, errors.New("the shares are too large to add")
	}
	if n < 1 || unit < 1 {
		return nil, fmt.Errorf("nothing to deal: %d in units of %d", n, unit)
	}
	units := n/unit + min(1, n%unit)
	if len(shares) == 0 || units < len(shares) {
		return nil, fmt.Errorf("%d ranks: %w", len(shares), ErrTooManyRanks)
	}
	// Every rank gets what it can claim in whole, at least one unit. The rest goes,
	// one by one, where it makes the least work, to the lowest rank among equals.
	got := make([]int, len(shares))
	left := units
	for i, x := range shares {
		got[i] = max(1, int(float64(units)*(x/sum)))
		left -= got[i]
	}
	for ; left > 0; left-- {
		best := 0
		for i := range got {
			if float64(got[i]+1)/shares[i] < float64(got[best]+1)/shares[best] {
				best = i
			}
		}
		got[best]++
	}
	for ; left < 0; left++ { // tiny shares were rounded up to one unit
		most := -1
		for i := range got {
			if got[i] > 1 && (most < 0 || float64(got[i])/shares[i] > float64(got[most])/shares[most]) {
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
