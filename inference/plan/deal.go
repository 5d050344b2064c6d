package plan

import (
	"errors"
	"fmt"
	"math"
)

// ErrTooManyRanks: the model has fewer parts than ranks; leave ranks out.
var ErrTooManyRanks = errors.New("too many ranks for this model")

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
