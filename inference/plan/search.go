package plan

import (
	"errors"
	"math"
)

// Candidate is a plan that was considered. Of a refused one, Refused says why,
// and there is no Plan.
type Candidate struct {
	Kind  Kind  `json:"kind"`
	Nodes []int `json:"nodes"` // by rank; rank 0 leads
	Plan  Plan  `json:"plan"`
	// Memory is what each rank needs, by rank.
	Memory []Memory `json:"memory,omitempty"`
	Prediction
	Refused *Reason `json:"refused,omitempty"`
}

// MaxLayers bounds the models that are planned for: those there are have up to 126.
const MaxLayers = 256

// search looks for plans of one model on some nodes.
type search struct {
	m     *Model
	kinds kinds
	nodes []Node
	net   Network
	u     Usage
}

func newSearch(m *Model, nodes []Node, net Network, u Usage) (*search, error) {
	if len(nodes) < 1 || len(nodes) > MaxRanks {
		return nil, errors.New("a plan needs 1 to 32 Macs")
	}
	if n := len(m.Layers); n < 1 || n > MaxLayers || n != m.Shape.Layers {
		return nil, errors.New("a plan needs a model of 1 to 256 layers")
	}
	if err := u.check(m, len(nodes)); err != nil {
		return nil, err
	}
	for _, n := range nodes {
		if err := n.check(); err != nil {
			return nil, err
		}
	}
	if err := net.check(len(nodes)); err != nil {
		return nil, err
	}
	return &search{m, m.kinds(), nodes, net, u}, nil
}

// solo is node n alone.
func (s *search) solo(n int) Candidate {
	c := Candidate{Kind: KindSolo, Nodes: []int{n}}
	if c.Refused = s.refuse(c.Nodes); c.Refused != nil {
		return c
	}
	return s.finish(c, s.m.Shape.Solo())
}

// refuse says what speaks against nodes in any plan.
func (s *search) refuse(nodes []int) *Reason {
	leads := s.u.Leader < 0
	for _, n := range nodes {
		leads = leads || n == s.u.Leader
	}
	if !leads {
		return notLeading(s.nodes[s.u.Leader])
	}
	if a, b, found := s.net.unlinked(nodes); found {
		return noLink(s.nodes[a], s.nodes[b])
	}
	return nil
}

// finish works out memory and speed of a plan.
func (s *search) finish(c Candidate, p Plan) Candidate {
	c.Memory = p.memory(s.m, s.kinds, s.u)
	for r, mem := range c.Memory {
		if n := s.nodes[c.Nodes[r]]; mem.Total() > float64(n.Memory) {
			c.Refused = noRoom(n, mem.Total())
			return c
		}
	}
	c.Plan = p
	c.Prediction = p.predict(s.m, s.kinds, s.nodes, s.net, c.Nodes, s.u)
	return c
}

// leadFirst puts the leader first, else the fastest node, and leaves the others
// in order.
func (s *search) leadFirst(nodes []int) []int {
	lead := 0
	for i, n := range nodes {
		if n == s.u.Leader || s.u.Leader < 0 && s.nodes[n].Bandwidth > s.nodes[nodes[lead]].Bandwidth {
			lead = i
			if n == s.u.Leader {
				break
			}
		}
	}
	out := append(make([]int, 0, len(nodes)), nodes[lead])
	for i, n := range nodes {
		if i != lead {
			out = append(out, n)
		}
	}
	return out
}

// tensorParallel shares every layer among nodes, by speed as far as their memory
// allows.
func (s *search) tensorParallel(nodes []int) Candidate {
	c := Candidate{Kind: KindTensorParallel, Nodes: s.leadFirst(nodes)}
	if c.Refused = s.refuse(nodes); c.Refused != nil {
		return c
	}
	part := Part{Layers: Range{0, len(s.m.Layers)}}
	for r, n := range c.Nodes {
		part.Ranks = append(part.Ranks, r)
		part.Shares = append(part.Shares, s.nodes[n].Bandwidth)
	}
	// A rank over its memory gets less, so that the others get more, until all fit.
	for range rounds {
		c.Refused = nil
		p, err := s.m.Shape.Plan(part)
		if err != nil {
			c.Refused = cannotCut(err)
			return c
		}
		if c = s.finish(c, p); c.Refused == nil || !s.shrink(&part, c) {
			break
		}
	}
	if c.Refused == nil {
		return c
	}
	need, free := 0.0, 0.0
	for r, mem := range c.Memory {
		need, free = need+mem.Total(), free+float64(s.nodes[c.Nodes[r]].Memory)
	}
	if need > free {
		c.Refused = noRoomTogether(len(nodes), need, free)
	}
	return c
}

// rounds bounds how often shares are corrected.
const rounds = 12

// shrink lowers the shares of ranks that need more memory than they have; false
// when all do, or one cannot hold even what every rank must.
func (s *search) shrink(part *Part, c Candidate) bool {
	fits := false
	sum, rest := 0.0, 0.0
	for _, x := range part.Shares {
		sum += x
	}
	shares := make([]float64, len(part.Shares))
	for r, mem := range c.Memory {
		free := float64(s.nodes[c.Nodes[r]].Memory)
		if mem.Total() <= free {
			fits = true
			rest += part.Shares[r]
			continue
		}
		variable := mem.Weights + mem.Cache
		fixed := mem.Total() - variable
		if free <= fixed {
			return false
		}
		// A little less than what would do: heads and columns come in units.
		shares[r] = part.Shares[r] / sum * (free - fixed) / variable * 0.97
	}
	if !fits {
		return false
	}
	left := 1.0
	for _, x := range shares {
		left -= x
	}
	for r := range shares {
		if shares[r] == 0 {
			shares[r] = left * part.Shares[r] / rest
		}
		if !(shares[r] > 0) || math.IsInf(shares[r], 0) {
			return false
		}
	}
	part.Shares = shares
	return true
}

// stages makes one stage of each group, in an order in which neighbours are near:
// the leader's last, since logits go to the leader.
func (s *search) stages(kind Kind, groups [][]int) Candidate {
	groups = s.chain(groups)
	c := Candidate{Kind: kind}
	// Ranks: the leader, then all others in the order of stages.
	last := groups[len(groups)-1]
	rank := map[int]int{last[0]: 0}
	c.Nodes = append(c.Nodes, last[0])
	for _, g := range groups {
		for _, n := range g {
			if n != last[0] {
				rank[n] = len(c.Nodes)
				c.Nodes = append(c.Nodes, n)
			}
		}
	}
	if c.Refused = s.refuse(c.Nodes); c.Refused != nil {
		return c
	}
	if len(groups) > len(s.m.Layers) {
		c.Refused = fewLayers(len(s.m.Layers), len(groups))
		return c
	}
	var best *Candidate
	for _, by := range []func(Node) float64{bySpeed, byMemory} {
		parts := make([]Part, len(groups))
		teams := make([]*team, len(groups))
		for i, g := range groups {
			for _, n := range g {
				parts[i].Ranks = append(parts[i].Ranks, rank[n])
				parts[i].Shares = append(parts[i].Shares, by(s.nodes[n]))
			}
		}
		p, err := s.m.Shape.Plan(parts...)
		if err != nil {
			c.Refused = cannotCut(err)
			return c
		}
		for i, g := range groups {
			teams[i] = newTeam(s.m, s.nodes, s.net, g, p.Stages[i].Shards)
		}
		for _, goal := range []goal{leastSum, leastSlowest} {
			cut, ok := s.partition(teams, groups, goal)
			if !ok {
				break
			}
			q := Plan{Stages: append([]Stage(nil), p.Stages...)}
			for i := range q.Stages {
				q.Stages[i].Layers = cut[i]
			}
			if d := s.finish(c, q); d.Refused == nil && (best == nil || d.Answer < best.Answer) {
				best = &d
			}
		}
		if kind == KindPipeline {
			break // shares do not matter
		}
	}
	if best != nil {
		return *best
	}
	free := 0.0
	for _, n := range c.Nodes {
		free += float64(s.nodes[n].Memory)
	}
	c.Refused = noRoomTogether(len(c.Nodes), s.needed(len(c.Nodes)), free)
	return c
}

func bySpeed(n Node) float64  { return n.Bandwidth }
func byMemory(n Node) float64 { return max(1, float64(n.Memory)) }

// needed is about what a pipeline of so many ranks takes.
func (s *search) needed(ranks int) float64 {
	solo := s.m.Shape.Solo().memory(s.m, s.kinds, s.u)[0]
	return solo.Weights + solo.Cache + float64(ranks)*solo.Scratch
}

// chain orders groups: the leader's (or the fastest node's) last, and before each
// the one with the best link to it; in it, the leader first.
func (s *search) chain(groups [][]int) [][]int {
	all := []int{}
	for _, g := range groups {
		all = append(all, g...)
	}
	lead := s.leadFirst(all)[0]
	left := append([][]int(nil), groups...)
	out := make([][]int, len(groups))
	take := func(i int) []int {
		g := left[i]
		left = append(left[:i], left[i+1:]...)
		return g
	}
	for i, g := range left {
		if at := index(g, lead); at >= 0 {
			g = take(i)
			ordered := append([]int{lead}, g[:at]...)
			out[len(out)-1] = append(ordered, g[at+1:]...)
			break
		}
	}
	for i := len(out) - 2; i >= 0; i-- {
		to := out[i+1][0]
		best := 0
		for j := range left {
			if s.net.link(left[j][0], to).before(s.net.link(left[best][0], to)) {
				best = j
			}
		}
		out[i] = take(best)
	}
	return out
}

// before tells whether l hands over a token sooner than k.
func (l Link) before(k Link) bool {
	if (l.Bandwidth == 0) != (k.Bandwidth == 0) {
		return l.Bandwidth > 0
	}
	return l.Latency < k.Latency || l.Latency == k.Latency && l.Bandwidth > k.Bandwidth
}

func index(list []int, x int) int {
	for i, y := range list {
		if x == y {
			return i
		}
	}
	return -1
}
