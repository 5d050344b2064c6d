package rdma

// A flow is one direction of a line. Its messages all go from the neighbour
// behind to this rank and from here to the neighbour ahead, so two flows never
// share a direction of a pair.
type flow struct {
	line *line
	dir  int // 1 or -1

	sends, recvs         int // in gather
	firstSend, firstRecv int // in reduce: the farthest positions ahead

	// The task at hand.
	task    task
	tag     Tag
	parts   [][]byte // by rank
	wire    Wire
	partial [2][]byte // memory for reduce
	sum     []byte    // what reduce got for this rank from behind, or nil
}

type task uint8

const (
	gatherTask task = iota
	reduceTask
)

// init works out how far the flow goes. In a ring it covers half of the others,
// in a chain all that there are on either side.
func (f *flow) init() {
	n := len(f.line.order)
	if f.line.ring {
		reach := n / 2
		if f.dir < 0 {
			reach = n - 1 - reach
		}
		f.sends, f.recvs = reach, reach
		f.firstSend, f.firstRecv = reach, reach-1
		return
	}
	behind := f.line.pos
	if f.dir < 0 {
		behind = n - 1 - behind
	}
	ahead := n - 1 - behind
	f.recvs = behind
	f.firstSend, f.firstRecv = ahead, -1
	if ahead > 0 {
		f.sends = behind + 1
	}
	if behind > 0 {
		f.firstRecv = ahead
	}
}

func (f *flow) run() error {
	if f.task == gatherTask {
		return f.gather()
	}
	return f.reduce()
}

// part is what the rank so many places ahead looks after.
func (f *flow) part(ahead int) []byte { return f.parts[f.line.rank(f.dir*ahead)] }

func (f *flow) next() int { return f.line.rank(f.dir) }
func (f *flow) prev() int { return f.line.rank(-f.dir) }

func (f *flow) sendRecv(out, in []byte) error {
	return f.line.group.transport.SendRecv(f.tag, f.next(), out, f.prev(), in)
}

func (f *flow) send(out []byte) error { return f.line.group.transport.Send(f.next(), f.tag, out) }
func (f *flow) recv(in []byte) error  { return f.line.group.transport.Recv(f.prev(), f.tag, in) }

// steps is how many rounds gather takes. In each it sends what came in the one
// before; the first is this rank's own part.
func (f *flow) steps() int { return max(f.sends, f.recvs) }

func (f *flow) gatherSend(k int) error {
	if k >= f.sends {
		return nil
	}
	return f.send(f.part(-k))
}

func (f *flow) gatherRecv(k int) error {
	if k >= f.recvs {
		return nil
	}
	return f.recv(f.part(-k - 1))
}

func (f *flow) gather() error {
	for k := range f.steps() {
		var err error
		switch {
		case k < f.sends && k < f.recvs:
			err = f.sendRecv(f.part(-k), f.part(-k-1))
		case k < f.sends:
			err = f.send(f.part(-k))
		default:
			err = f.recv(f.part(-k - 1))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// reduce sends, for each position ahead and the farthest first, the sum of this
// rank's part for it and those from behind.
func (f *flow) reduce() error {
	f.sum = nil
	if f.firstRecv < 0 { // nobody is behind
		for ahead := f.firstSend; ahead > 0; ahead-- {
			if err := f.send(f.part(ahead)); err != nil {
				return err
			}
		}
		return nil
	}
	// Of the two buffers one is on its way while the other is filled.
	out, ahead := f.part(f.firstSend), f.firstSend
	if f.firstRecv == f.firstSend {
		in := f.buffer(ahead)
		if err := f.recv(in); err != nil {
			return err
		}
		out = f.add(in, ahead)
	}
	for ; ahead > 0; ahead-- {
		in := f.buffer(ahead - 1)
		if err := f.sendRecv(out, in); err != nil {
			return err
		}
		out = f.add(in, ahead-1)
	}
	return nil
}

// buffer returns memory for what comes for a position.
func (f *flow) buffer(ahead int) []byte {
	return f.partial[ahead%2][:len(f.part(ahead))]
}

// add makes the sum that came for a position into the next one to send. That
// for this rank stays as it came.
func (f *flow) add(in []byte, ahead int) []byte {
	if ahead == 0 {
		f.sum = in
	} else {
		f.wire.addInto(in, f.part(ahead))
	}
	return in
}
