package rdma

// A line joins all ranks by direct pairs only: a ring, or a chain with two ends.
// Collectives on it are made of two flows, one each way, in which everything
// takes the shorter way round:
//
//   - gather passes every rank's part on until all have it;
//   - reduce passes partial sums of each part on to the rank that looks after
//     it, from both sides. With positions on the line instead of ranks, the sum
//     at position p is ((v[p-a] + … + v[p-1]) + v[p]) + (v[p+b] + … + v[p+1]):
//     on a chain a and b reach to its ends, on a ring of N a is N/2 and b the
//     rest, N-1-a.
//
// Long messages of the two flows move at the same time, the one by the caller
// and the other by the group's second goroutine, so that a link is used in both
// directions.
type line struct {
	group *Group
	order []int // ranks by position
	pos   int   // of this rank
	ring  bool
	flows [2]flow // forward and backward
	hand  hand
}

func newLine(g *Group, order []int, ring bool) *line {
	l := &line{group: g, order: order, ring: ring}
	for p, r := range order {
		if r == g.rank {
			l.pos = p
		}
	}
	l.flows = [2]flow{{line: l, dir: 1}, {line: l, dir: -1}}
	for i := range l.flows {
		l.flows[i].init()
	}
	l.hand.start(l.flows[1].run)
	return l
}

// rank is who sits so many places from here, round a ring if need be.
func (l *line) rank(offset int) int {
	n := len(l.order)
	return l.order[((l.pos+offset)%n+n)%n]
}

// both runs the two flows and returns when both are done.
func (l *line) both() error {
	l.hand.begin()
	err := l.flows[0].run()
	if err2 := l.hand.wait(); err == nil {
		err = err2
	}
	return err
}

// gather brings parts[r] of every rank r to all others.
func (l *line) gather(tag Tag, parts [][]byte) error {
	longest := 0
	for _, p := range parts {
		longest = max(longest, len(p))
	}
	f, b := &l.flows[0], &l.flows[1]
	f.task, f.tag, f.parts = gatherTask, tag, parts
	b.task, b.tag, b.parts = gatherTask, tag, parts
	if longest > l.group.transport.EagerLimit() {
		return l.both()
	}
	// Sending does not wait, so one goroutine keeps both flows going.
	for k := range max(f.steps(), b.steps()) {
		for i := range l.flows {
			if err := l.flows[i].gatherSend(k); err != nil {
				return err
			}
		}
		for i := range l.flows {
			if err := l.flows[i].gatherRecv(k); err != nil {
				return err
			}
		}
	}
	return nil
}

// reduce leaves in mine the sum of this rank's part of all ranks' parts. It
// takes memory for four of the longest part.
func (l *line) reduce(tag Tag, w Wire, mine []float32, parts [][]byte) error {
	longest := 0
	for _, p := range parts {
		longest = max(longest, len(p))
	}
	for i := range l.flows {
		f := &l.flows[i]
		f.task, f.tag, f.parts, f.wire = reduceTask, tag, parts, w
		for k := range f.partial {
			f.partial[k] = l.group.memory.take(longest)
		}
	}
	if err := l.both(); err != nil {
		return err
	}
	operands := l.group.ins[:0]
	if l.flows[0].sum != nil {
		operands = append(operands, l.flows[0].sum)
	}
	operands = append(operands, parts[l.group.rank])
	if l.flows[1].sum != nil {
		operands = append(operands, l.flows[1].sum)
	}
	w.sum(mine, operands)
	return nil
}
