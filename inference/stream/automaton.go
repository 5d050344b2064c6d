package stream

// automaton finds the first of several patterns to be complete, in one pass (Aho and Corasick). Of those complete at
// the same byte it takes the longest.
type automaton struct {
	nodes []node
}

type node struct {
	edges []edge
	fail  int32 // the longest proper suffix that is in the trie too
	depth int32 // bytes from the root: how much text may belong to a pattern
	event int32 // the pattern complete here, itself or by a suffix; -1 for none
	size  int32 // its bytes
}

type edge struct {
	b  byte
	to int32
}

// newAutomaton builds an automaton over patterns; the index of one is its event. Empty patterns are left out, and of
// equal ones the first counts.
func newAutomaton(patterns []string) *automaton {
	a := &automaton{nodes: []node{{event: -1}}}
	for i, p := range patterns {
		a.add(p, int32(i))
	}
	a.link()
	return a
}

func (a *automaton) add(p string, event int32) {
	if p == "" {
		return
	}
	at := int32(0)
	for i := range len(p) {
		to, ok := a.child(at, p[i])
		if !ok {
			to = int32(len(a.nodes))
			a.nodes = append(a.nodes, node{depth: int32(i + 1), event: -1})
			a.nodes[at].edges = append(a.nodes[at].edges, edge{p[i], to})
		}
		at = to
	}
	if a.nodes[at].event < 0 {
		a.nodes[at].event, a.nodes[at].size = event, int32(len(p))
	}
}

// link sets the fail links, level by level.
func (a *automaton) link() {
	queue := []int32{0}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for _, e := range a.nodes[at].edges {
			queue = append(queue, e.to)
			if at == 0 {
				continue
			}
			n := &a.nodes[e.to]
			n.fail = a.step(a.nodes[at].fail, e.b)
			if f := a.nodes[n.fail]; n.event < 0 && f.event >= 0 {
				n.event, n.size = f.event, f.size
			}
		}
	}
}

func (a *automaton) child(at int32, b byte) (int32, bool) {
	for _, e := range a.nodes[at].edges {
		if e.b == b {
			return e.to, true
		}
	}
	return 0, false
}

// step returns the state after b.
func (a *automaton) step(at int32, b byte) int32 {
	for {
		if to, ok := a.child(at, b); ok {
			return to
		}
		if at == 0 {
			return 0
		}
		at = a.nodes[at].fail
	}
}
