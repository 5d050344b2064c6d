package plan

import "math"

// goal says what cutting layers into stages is to make small: the time of one
// token, which is the sum of the stages' times, or the slowest stage's, which
// decides when several are at work.
type goal int

const (
	leastSum goal = iota
	leastSlowest
)

func (g goal) join(a, b float64) float64 {
	if g == leastSum {
		return a + b
	}
	return max(a, b)
}

// partition cuts layers into one run for each team, none of them empty, such that
// no rank needs more than its memory and the goal is best. ok is false when there
// is no such cut. It takes stages times layers squared steps.
func (s *search) partition(teams []*team, members [][]int, g goal) (cut []Range, ok bool) {
	layers := len(s.m.Layers)
	// best[l] is the best for the stages so far when they hold the layers before l.
	best, next := make([]float64, layers+1), make([]float64, layers+1)
	for l := range best {
		best[l] = math.Inf(1)
	}
	best[0] = 0
	from := make([][]int, len(teams))
	for i := range teams {
		from[i] = make([]int, layers+1)
		first, last := i == 0, i == len(teams)-1
		times, least := s.times(teams[i], first, last)
		room := s.room(teams[i], members[i], first, last)
		for l := range next {
			next[l] = math.Inf(1)
		}
		for lo := i; lo < layers; lo++ {
			if math.IsInf(best[lo], 1) {
				continue
			}
			for hi := lo + 1; hi <= room[lo]; hi++ {
				t := g.join(best[lo], least+(times[hi]-times[lo]))
				if t < next[hi] {
					next[hi], from[i][hi] = t, lo
				}
			}
		}
		best, next = next, best
	}
	if math.IsInf(best[layers], 1) {
		return nil, false
	}
	cut = make([]Range, len(teams))
	for i, hi := len(teams)-1, layers; i >= 0; i-- {
		cut[i] = Range{from[i][hi], hi}
		hi = from[i][hi]
	}
	return cut, true
}

// times are sums over a team's layers before each: of computing, launches and
// all-reduces for one token. least is what a stage takes besides.
func (s *search) times(t *team, first, last bool) (sums []float64, least float64) {
	b := batch{1, 1, s.u.position()}
	kinds := make([]float64, len(s.kinds.first))
	launch0, network0 := t.meet(s.m, 0, first, b)
	launch1, network1 := t.meet(s.m, 1, first, b)
	each := launch1 - launch0 + network1 - network0
	for k, l := range s.kinds.first {
		kinds[k] = t.layer(s.m, &s.m.Layers[l], b, s.u) + each
	}
	sums = make([]float64, len(s.m.Layers)+1)
	for l, k := range s.kinds.of {
		sums[l+1] = sums[l] + kinds[k]
	}
	least = launch0 + network0
	if last {
		least += t.output(s.m, b)
	}
	return sums, least
}

// room is, for each first layer of a stage, where the stage must end for all of
// its ranks to have the memory.
func (s *search) room(t *team, members []int, first, last bool) []int {
	layers := len(s.m.Layers)
	ends := make([]int, layers)
	for l := range ends {
		ends[l] = layers
	}
	kinds := make([]float64, len(s.kinds.first))
	for j, n := range members {
		p := t.parts[j]
		free := float64(s.nodes[n].Memory) - s.m.scratch(p, s.u) - s.m.ends(p, first, last)
		for k, l := range s.kinds.first {
			w, c := s.m.layerMemory(&s.m.Layers[l], p, s.u)
			kinds[k] = w + c
		}
		need, hi := 0.0, 0
		for lo := range ends {
			for hi < layers && need+kinds[s.kinds.of[hi]] <= free {
				need += kinds[s.kinds.of[hi]]
				hi++
			}
			ends[lo] = min(ends[lo], hi)
			if hi > lo {
				need -= kinds[s.kinds.of[lo]]
			} else {
				hi = lo + 1
			}
		}
	}
	return ends
}
