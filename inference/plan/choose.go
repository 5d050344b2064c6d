package plan

import (
	"fmt"
	"slices"
	"sort"
)

// Choice is what came of looking for a plan.
type Choice struct {
	// Best is the chosen one's index in Candidates; -1 when nothing works.
	Best int `json:"best"`
	// Candidates are each node alone, and for each kind and number of nodes the
	// best plan, or if there is none, why not. Those that work come first, the
	// quickest to answer foremost.
	Candidates []Candidate `json:"candidates"`
	// Reasons say why that one was chosen, and why each node that has no part in
	// it was left out.
	Reasons []Reason `json:"reasons"`
}

// Chosen is the best candidate; ok is false when nothing works.
func (c *Choice) Chosen() (best Candidate, ok bool) {
	if c.Best < 0 {
		return Candidate{}, false
	}
	return c.Candidates[c.Best], true
}

// littleGain is how much sooner an answer must be there for more nodes, or a plan
// that needs more of their links, to be worth it.
const littleGain = 1.03

// Choose looks for the plan that answers soonest: that predicts the least time
// from a prompt of Usage.Prompt tokens to the last of Usage.Answer tokens. Nodes
// that would slow the others are left out. An error means that the question makes
// no sense; that nothing fits is a Choice without a Best.
func Choose(m *Model, nodes []Node, net Network, u Usage) (*Choice, error) {
	s, err := newSearch(m, nodes, net, u)
	if err != nil {
		return nil, err
	}
	b := board{}
	for n := range nodes {
		b.solos = append(b.solos, s.solo(n))
	}
	for _, set := range s.subsets() {
		b.add(s.candidates(set)...)
	}
	c := b.choice()
	s.explain(c)
	return c, nil
}

// candidates are the plans for exactly these nodes, two or more.
func (s *search) candidates(nodes []int) []Candidate {
	single := make([][]int, len(nodes))
	for i := range nodes {
		single[i] = nodes[i : i+1]
	}
	out := []Candidate{s.tensorParallel(nodes), s.stages(KindPipeline, single)}
	for _, groups := range s.groupings(nodes) {
		out = append(out, s.stages(KindMixed, groups))
	}
	return out
}

// board keeps the best of each kind and number of nodes.
type board struct {
	solos []Candidate
	best  map[place]Candidate
}

type place struct {
	kind  Kind
	nodes int
}

func (b *board) add(cs ...Candidate) {
	if b.best == nil {
		b.best = map[place]Candidate{}
	}
	for _, c := range cs {
		at := place{c.Kind, len(c.Nodes)}
		if old, there := b.best[at]; !there || c.better(old) {
			b.best[at] = c
		}
	}
}

// better puts what works before what does not, and the sooner answer first.
func (c *Candidate) better(d Candidate) bool {
	if (c.Refused == nil) != (d.Refused == nil) {
		return c.Refused == nil
	}
	return c.Refused == nil && c.Answer < d.Answer
}

// kindOrder is from the simplest plan on.
var kindOrder = []Kind{KindSolo, KindTensorParallel, KindPipeline, KindMixed}

func (b *board) choice() *Choice {
	c := &Choice{Best: -1, Candidates: slices.Clone(b.solos)}
	for nodes := 2; nodes <= len(b.solos); nodes++ {
		for _, k := range kindOrder {
			if x, there := b.best[place{k, nodes}]; there && !(k == KindMixed && x.Refused != nil) {
				c.Candidates = append(c.Candidates, x)
			}
		}
	}
	sort.SliceStable(c.Candidates, func(i, j int) bool { return c.Candidates[i].better(c.Candidates[j]) })
	for i, x := range c.Candidates {
		if x.Refused != nil || x.Answer > c.Candidates[0].Answer*littleGain {
			continue
		}
		if c.Best < 0 || x.simpler(c.Candidates[c.Best]) {
			c.Best = i
		}
	}
	return c
}

// simpler tells whether c needs fewer nodes, or asks less of as many.
func (c *Candidate) simpler(d Candidate) bool {
	if len(c.Nodes) != len(d.Nodes) {
		return len(c.Nodes) < len(d.Nodes)
	}
	return slices.Index(kindOrder, c.Kind) < slices.Index(kindOrder, d.Kind)
}

// explain fills in the reasons.
func (s *search) explain(c *Choice) {
	best, ok := c.Chosen()
	if !ok {
		c.Reasons = []Reason{s.whyNothing(c)}
		return
	}
	c.Reasons = append(c.Reasons, s.why(c, best))
	for n := range s.nodes {
		if len(best.Nodes) > 1 && !slices.Contains(best.Nodes, n) {
			c.Reasons = append(c.Reasons, s.whyWithout(best, n))
		}
	}
}

func (s *search) whyNothing(c *Choice) Reason {
	most := 0
	for i, n := range s.nodes {
		if n.Memory > s.nodes[most].Memory {
			most = i
		}
	}
	for _, x := range slices.Backward(c.Candidates) {
		if x.Refused != nil && x.Refused.Code == CodeNoRoomShared {
			return *x.Refused
		}
	}
	for _, x := range c.Candidates {
		if x.Kind == KindSolo && x.Nodes[0] == most && x.Refused != nil {
			return *x.Refused
		}
	}
	return *c.Candidates[0].Refused
}

// fastestSolo is the best node alone, and whether one has the room.
func fastestSolo(c *Choice) (solo Candidate, ok bool) {
	for _, x := range c.Candidates {
		if x.Kind == KindSolo && x.Refused == nil {
			return x, true
		}
	}
	return Candidate{}, false
}

// why says why the best one is.
func (s *search) why(c *Choice, best Candidate) Reason {
	if len(s.nodes) == 1 {
		n := s.nodes[best.Nodes[0]]
		return Reason{CodeOnlyNode, map[string]any{"node": n.Name}, fmt.Sprintf("%s is the only Mac", n.Name)}
	}
	if best.Kind == KindSolo {
		return s.whySolo(c, best)
	}
	solo, ok := fastestSolo(c)
	if !ok {
		return s.whyTogether(c, best)
	}
	n := s.nodes[solo.Nodes[0]]
	args := map[string]any{"nodes": len(best.Nodes), "decode": best.Decode, "alone": solo.Decode, "node": n.Name,
		"first_token": best.FirstToken, "first_token_alone": solo.FirstToken}
	if best.Decode >= solo.Decode {
		return Reason{CodeFaster, args, fmt.Sprintf("%d Macs together are faster: %s tokens per second, %s alone makes %s",
			len(best.Nodes), tps(best.Decode), n.Name, tps(solo.Decode))}
	}
	return Reason{CodeFaster, args, fmt.Sprintf("%d Macs together answer sooner: the first word after %.1f s, on %s alone after %.1f s",
		len(best.Nodes), best.FirstToken, n.Name, solo.FirstToken)}
}

// whyTogether says what keeps the model from one node.
func (s *search) whyTogether(c *Choice, best Candidate) Reason {
	for _, n := range s.sorted(func(n Node) float64 { return float64(n.Memory) }) {
		for _, x := range c.Candidates {
			if x.Kind == KindSolo && x.Nodes[0] == n && x.Refused.Code == CodeNoRoom {
				args := map[string]any{"node": s.nodes[n].Name, "needed": x.Refused.Args["needed"], "free": x.Refused.Args["free"], "nodes": len(best.Nodes)}
				who := "no Mac has"
				if s.u.Leader >= 0 { // it is the only one that was asked
					who = s.nodes[n].Name + " has no"
				}
				return Reason{CodeNeedsRoom, args, fmt.Sprintf("%s room for it alone: %s needed, %s free on %s; on %d Macs it fits",
					who, gb(x.Memory[0].Total()), gb(float64(s.nodes[n].Memory)), s.nodes[n].Name, len(best.Nodes))}
			}
		}
	}
	return Reason{CodeFaster, map[string]any{"nodes": len(best.Nodes), "decode": best.Decode},
		fmt.Sprintf("%d Macs together make %s tokens per second", len(best.Nodes), tps(best.Decode))}
}

// whySolo compares with the best that more nodes could do by sharing the layers,
// or if they cannot, in any other way.
func (s *search) whySolo(c *Choice, best Candidate) Reason {
	name := s.nodes[best.Nodes[0]].Name
	var with, refused *Candidate
	for i := range c.Candidates {
		x := &c.Candidates[i]
		switch {
		case len(x.Nodes) < 2:
		case x.Refused != nil:
			if refused == nil && x.Refused.Code != CodeLeader {
				refused = x
			}
		case with == nil || x.Kind == KindTensorParallel && with.Kind != KindTensorParallel:
			with = x
		}
	}
	if with == nil {
		if refused == nil {
			return Reason{CodeOnlyNode, map[string]any{"node": name}, fmt.Sprintf("%s works alone", name)}
		}
		return Reason{CodeNoUse, map[string]any{"node": name, "why": refused.Refused.Code},
			fmt.Sprintf("%s works alone: %s", name, refused.Refused.Text)}
	}
	saved := best.Token.Total() - with.Token.Compute
	network := with.Token.Total() - with.Token.Compute
	args := map[string]any{"node": name, "network": network, "saved": saved}
	others := "the second Mac saves"
	if len(with.Nodes) > 2 {
		others = "the other Macs save"
	}
	switch {
	case saved <= 0:
		return Reason{CodeSlowOthers, args, fmt.Sprintf("%s alone is faster: the others are too slow to help", name)}
	case network < saved:
		return Reason{CodeLittleGain, map[string]any{"node": name, "with": with.Decode, "without": best.Decode},
			fmt.Sprintf("%s alone is nearly as fast: %s tokens per second, with others %s", name, tps(best.Decode), tps(with.Decode))}
	}
	return Reason{CodeSoloFaster, args, fmt.Sprintf("one Mac alone is faster: the network costs %s per token and %s %s",
		ms(network), others, ms(saved))}
}

// whyWithout says what node n would do to the best plan.
func (s *search) whyWithout(best Candidate, n int) Reason {
	name := s.nodes[n].Name
	var with *Candidate
	for _, x := range s.candidates(s.order(append(slices.Clone(best.Nodes), n))) {
		if with == nil || x.better(*with) {
			with = &x
		}
	}
	if with.Refused != nil {
		return Reason{CodeNoUse, map[string]any{"node": name, "why": with.Refused.Code},
			fmt.Sprintf("leaves out %s: %s", name, with.Refused.Text)}
	}
	args := map[string]any{"node": name, "with": with.Decode, "without": best.Decode,
		"first_token_with": with.FirstToken, "first_token_without": best.FirstToken}
	const who = "the others"
	switch {
	case with.Answer < best.Answer:
		return Reason{CodeLittleGain, args, fmt.Sprintf("leaves out %s: with it %s tokens per second, without %s", name, tps(with.Decode), tps(best.Decode))}
	case tps(with.Decode) == tps(best.Decode) && with.FirstToken >= best.FirstToken:
		return Reason{CodeLittleGain, args, fmt.Sprintf("leaves out %s: it would not make %s faster", name, who)}
	case with.Decode < best.Decode:
		return Reason{CodeLeftOut, args, fmt.Sprintf("leaves out %s: it would slow %s from %s to %s tokens per second", name, who, tps(best.Decode), tps(with.Decode))}
	}
	return Reason{CodeLeftOutTTF, args, fmt.Sprintf("leaves out %s: with it the first word would come after %.1f s instead of %.1f s", name, with.FirstToken, best.FirstToken)}
}

// order sorts nodes by speed, as subsets are.
func (s *search) order(nodes []int) (out []int) {
	for _, n := range s.sorted(func(n Node) float64 { return n.Bandwidth }) {
		if slices.Contains(nodes, n) {
			out = append(out, n)
		}
	}
	return out
}
