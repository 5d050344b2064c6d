package rdma

// maxSearch bounds how many steps the search for a ring or chain may take, so
// that a large and sparse topology cannot hold up a group. Eight ranks need a
// few hundred.
const maxSearch = 100_000

// findLine returns the ranks in an order in which neighbours are directly
// connected, the last and the first too when ring is true. Of all such orders
// it is the first in the sense of a dictionary, rings before chains, so it is
// the same on every rank and for a chain of machines numbered along it it is
// their numbers. It returns nil when all pairs are connected, and when there is
// neither a ring nor a chain.
func findLine(t Topology, worldSize int) (order []int, ring bool) {
	complete := true
	for a := range worldSize {
		for b := range a {
			complete = complete && t.Direct(a, b)
		}
	}
	if complete {
		return nil, false
	}
	for _, ring := range []bool{true, false} {
		s := search{t: t, n: worldSize, ring: ring, used: make([]bool, worldSize), left: maxSearch}
		starts := worldSize
		if ring {
			starts = 1
		}
		for first := range starts {
			if s.extend(first) {
				return s.order, ring
			}
		}
	}
	return nil, false
}

type search struct {
	t     Topology
	n     int
	ring  bool
	order []int
	used  []bool
	left  int
}

// extend tries all ways to go on with rank r, and takes it back if none is one.
func (s *search) extend(r int) bool {
	if s.left--; s.left < 0 {
		return false
	}
	s.order = append(s.order, r)
	s.used[r] = true
	if len(s.order) == s.n && (!s.ring || s.t.Direct(r, s.order[0])) {
		return true
	}
	for next := range s.n {
		if !s.used[next] && s.t.Direct(r, next) && s.extend(next) {
			return true
		}
	}
	s.order = s.order[:len(s.order)-1]
	s.used[r] = false
	return false
}
