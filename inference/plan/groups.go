package plan

import "sort"

// allSubsets is up to how many nodes every set of them is looked at.
const allSubsets = 6

// subsets are the sets of two and more nodes to look at, each in descending order
// of speed: all of a few nodes; of more, the fastest ones, those with most memory,
// and what good links join.
func (s *search) subsets() [][]int {
	bySpeed := s.sorted(func(n Node) float64 { return n.Bandwidth })
	var out [][]int
	seen := map[uint64]bool{}
	add := func(set []int) {
		var key uint64
		for _, n := range set {
			key |= 1 << n
		}
		if len(set) > 1 && !seen[key] {
			seen[key] = true
			ordered := make([]int, 0, len(set))
			for _, n := range bySpeed {
				if key&(1<<n) != 0 {
					ordered = append(ordered, n)
				}
			}
			out = append(out, ordered)
		}
	}
	if len(s.nodes) <= allSubsets {
		for key := range 1 << len(s.nodes) {
			var set []int
			for n := range s.nodes {
				if key&(1<<n) != 0 {
					set = append(set, n)
				}
			}
			add(set)
		}
		return out
	}
	for _, order := range [][]int{bySpeed, s.sorted(func(n Node) float64 { return float64(n.Memory) })} {
		if s.u.Leader >= 0 { // it takes part anyhow
			at := index(order, s.u.Leader)
			order = append(append([]int{s.u.Leader}, order[:at]...), order[at+1:]...)
		}
		for n := 2; n <= len(order); n++ {
			add(order[:n])
		}
	}
	for _, groups := range s.clusters(bySpeed) {
		for _, g := range groups {
			for n := 2; n <= len(g); n++ {
				add(g[:n])
			}
		}
	}
	return out
}

// sorted are the nodes in descending order of what is said, then in order.
func (s *search) sorted(by func(Node) float64) []int {
	out := make([]int, len(s.nodes))
	for i := range out {
		out[i] = i
	}
	sort.SliceStable(out, func(a, b int) bool { return by(s.nodes[out[a]]) > by(s.nodes[out[b]]) })
	return out
}

// maxClusterings bounds how many different latencies count.
const maxClusterings = 4

// clusters groups nodes by their links: for each latency, those that links as
// fast join. The slowest links, which join all, are left out.
func (s *search) clusters(nodes []int) (out [][][]int) {
	var latencies []float64
	for i, a := range nodes {
		for _, b := range nodes[:i] {
			if l := s.net.link(a, b); l.Bandwidth > 0 {
				latencies = append(latencies, l.Latency)
			}
		}
	}
	sort.Float64s(latencies)
	last := -1
	for i, t := range latencies {
		if i > 0 && t <= latencies[max(0, last)]*2 || len(out) == maxClusterings {
			continue // as good as the same
		}
		last = i
		var limit float64
		for _, x := range latencies[i:] {
			if x <= t*2 {
				limit = x
			}
		}
		if groups := s.joined(nodes, limit); len(groups) > 1 && len(groups) < len(nodes) {
			out = append(out, groups)
		}
	}
	return out
}

// joined groups nodes that links of at most that latency join, in their order.
func (s *search) joined(nodes []int, latency float64) (groups [][]int) {
	left := append([]int(nil), nodes...)
	for len(left) > 0 {
		group := []int{left[0]}
		left = left[1:]
		for i := 0; i < len(group); i++ {
			rest := left[:0:0]
			for _, n := range left {
				if l := s.net.link(group[i], n); l.Bandwidth > 0 && l.Latency <= latency {
					group = append(group, n)
				} else {
					rest = append(rest, n)
				}
			}
			left = rest
		}
		groups = append(groups, group)
	}
	return groups
}

// groupings are ways to make stages of nodes, of which at least one is shared: by
// links; into runs of the given order, all ways for few nodes and even ones for
// many.
func (s *search) groupings(nodes []int) (out [][][]int) {
	n := len(nodes)
	if n < 3 {
		return nil
	}
	out = s.clusters(nodes)
	for stages := 2; stages < n && stages <= maxGroups; stages++ {
		if n > allSubsets || stages > 2 {
			out = append(out, evenly(nodes, stages))
			continue
		}
		for first := 1; first < n; first++ {
			out = append(out, [][]int{nodes[:first], nodes[first:]})
		}
	}
	return out
}

// maxGroups bounds the stages of a mixed plan.
const maxGroups = 8

func evenly(nodes []int, groups int) [][]int {
	out := make([][]int, groups)
	for i := range out {
		out[i] = nodes[i*len(nodes)/groups : (i+1)*len(nodes)/groups]
	}
	return out
}
