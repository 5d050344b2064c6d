package plan

import (
	"errors"
	"math"
)

// maxCuts bounds where query heads may be cut, so that a hostile header cannot
// make dealHeads slow. Models have up to 128.
const maxCuts = 512

// dealHeads gives each rank its query heads: whole groups in proportion to the
// shares while there are enough, else the deal in which the rank that takes
// longest takes the least.
func (s Shape) dealHeads(shares []float64) ([]Range, error) {
	groups, err := Deal(s.KVHeads, s.KVHeadUnit, shares)
	if err == nil {
		for i, r := range groups {
			groups[i] = r.Scale(s.group())
		}
		return groups, nil
	}
	if !errors.Is(err, ErrTooManyRanks) {
		return nil, err
	}
	why := &CutError{"attention heads", s.heads(), s.headUnit(), s.group(), len(shares), err}
	unit, n := s.headUnit(), s.heads()
	if unit < 1 || n/unit > maxCuts || n/unit < len(shares) || len(shares) > MaxRanks || s.KVHeads < 1 || n%s.KVHeads != 0 {
		return nil, why
	}
	cuts := []int{}
	for c := 0; c < n; c += unit {
		cuts = append(cuts, c)
	}
	cuts = append(cuts, n)
	// worst[i][c] is the least possible time of the slowest of the first i ranks,
	// when they hold the heads before cuts[c]; from[i][c] where rank i-1 begins.
	worst, from := make([][]float64, len(shares)+1), make([][]int, len(shares)+1)
	for i := range worst {
		worst[i], from[i] = make([]float64, len(cuts)), make([]int, len(cuts))
		for c := range worst[i] {
			worst[i][c] = math.Inf(1)
		}
	}
	worst[0][0] = 0
	for i, share := range shares {
		for c := 1; c < len(cuts); c++ {
			for b := c - 1; b >= 0; b-- {
				if !s.oneShape(Range{cuts[b], cuts[c]}) {
					continue
				}
				if t := max(worst[i][b], float64(cuts[c]-cuts[b])/share); t < worst[i+1][c] {
					worst[i+1][c], from[i+1][c] = t, b
				}
			}
		}
	}
	last := len(cuts) - 1
	if math.IsInf(worst[len(shares)][last], 1) {
		return nil, why
	}
	out := make([]Range, len(shares))
	for i, c := len(shares), last; i > 0; i-- {
		b := from[i][c]
		out[i-1] = Range{cuts[b], cuts[c]}
		c = b
	}
	return out, nil
}
