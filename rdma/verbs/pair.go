package verbs

import (
	"errors"
	"fmt"
	"sync"

	"daisy/rdma"
	"daisy/rdma/verbs/provider"
)

// A pair is this rank's end of the rails to one other rank.
//
// Whoever sends holds sendTurn for a whole message, whoever receives recvTurn;
// a slot that one of them is copying belongs to him. All else, the queue pairs
// included, is guarded by mu, which is held for a few frames at a time and
// never while waiting.
type pair struct {
	peer     int
	epoch    uint64
	checksum bool
	rails    []*rail
	lanes    []*lane // of all rails: rail·nClasses + class

	sendTurn, recvTurn sync.Mutex

	mu      sync.Mutex
	closed  bool  // the rails are gone, or about to go
	saidBye bool  // nothing may be sent any more
	left    bool  // the peer has said bye; it may be in turn or not
	answer  bool  // and has not been told that this was seen
	seen    bool  // the peer has seen our bye, and all before it
	failed  error // the first failure of a rail
	lost    error // what calls get once the peer has left
	outSeq  uint32
	inSeq   uint32    // of the next slot in turn
	arrived []arrival // by sequence number, modulo the length
	next    int       // where the search for a bulk lane starts
	sending int       // posted sends that have not completed
	posts   uint64    // sends posted so far
	ticked  uint64    // posts when tick last looked
	ticks   int       // how often it has been the same since
	wcs     [provider.PollBatch]provider.WC
}

// An arrival is a slot that has come and is not taken yet.
type arrival struct {
	lane *lane // nil: nothing has arrived
	slot uint16
	header
}

func newPair(peer int, epoch uint64, checksum bool, rails []*rail) *pair {
	p := &pair{peer: peer, epoch: epoch, checksum: checksum, rails: rails,
		lost: &rdma.PeerLostError{Rank: peer, Cause: errors.New("it left the group")}}
	n := 0
	for _, r := range rails {
		for _, l := range r.lanes {
			p.lanes = append(p.lanes, l)
			n += len(l.recvSlots)
		}
	}
	size := 1 // a power of two, so that numbers that wrap around find their place
	for size < n {
		size *= 2
	}
	p.arrived = make([]arrival, size)
	return p
}

// Identifiers of work requests: the class, the slot and the direction.

const recvBit = 1 << 31

func sendID(c class, slot uint16) uint64 { return uint64(c)<<16 | uint64(slot) }
func recvID(c class, slot uint16) uint64 { return recvBit | sendID(c, slot) }

// poll takes what has completed and reports whether there was anything. The
// caller holds mu.
func (p *pair) poll() (any bool, err error) {
	if p.failed != nil {
		return false, p.failed
	}
	for _, r := range p.rails {
		for {
			n, err := r.cq.Poll(p.wcs[:])
			if err != nil {
				return any, p.fail(r, err)
			}
			for i := range n {
				if err := p.complete(r, &p.wcs[i]); err != nil {
					return any, p.fail(r, err)
				}
			}
			r.completed += uint64(n)
			any = any || n > 0
			if n < len(p.wcs) {
				break
			}
		}
	}
	for _, l := range p.lanes {
		if len(l.unposted) > 0 {
			if err := p.repost(l); err != nil {
				return any, err
			}
		}
	}
	if p.answer && !p.saidBye {
		p.answer = false // control may poll
		sent, err := p.control(kindSeen)
		p.answer = !sent && err == nil
	}
	return any, nil
}

// fail records why the pair cannot go on. A queue pair of a peer that has left
// may well fail: that is no failure but the same as its leave.
func (p *pair) fail(r *rail, err error) error {
	if p.failed == nil {
		if p.left {
			p.failed = p.lost
		} else {
			p.failed = &LinkError{Peer: p.peer, Device: r.device.name, Cause: err}
		}
	}
	return p.failed
}

func (p *pair) complete(r *rail, wc *provider.WC) error {
	c, slot, recv := class(wc.ID>>16&0x7fff), int(wc.ID&0xffff), wc.ID&recvBit != 0
	if wc.ID>>32 != 0 || c >= nClasses || slot >= len(r.lanes[c].recvSlots) {
		return fmt.Errorf("the provider completed a request %#x that was never posted", wc.ID)
	}
	l := r.lanes[c]
	if wc.Status != provider.WCSuccess {
		what := "sending"
		if recv {
			what = "receiving"
		}
		return fmt.Errorf("%s a %v slot: %v (vendor code %#x)", what, c, wc.Status, wc.VendorErr)
	}
	if !recv {
		if len(l.free) == len(l.sendSlots) {
			return fmt.Errorf("the provider completed request %#x twice", wc.ID)
		}
		l.free = append(l.free, uint16(slot))
		p.sending--
		return nil
	}
	if int(wc.Bytes) != len(l.recvMem[slot]) {
		return fmt.Errorf("a %v slot arrived with %d bytes instead of %d", c, wc.Bytes, len(l.recvMem[slot]))
	}
	return p.arrive(l, uint16(slot))
}

// arrive looks at what the peer has sent.
func (p *pair) arrive(l *lane, slot uint16) error {
	var h header
	if err := h.parse(l.recvMem[slot], p.epoch, p.checksum); err != nil {
		return err
	}
	for i, l := range p.lanes {
		// The counters come by several queue pairs and may overtake each other.
		n := h.freed[i] - l.freed
		if n >= 1<<15 {
			continue
		}
		if n > l.sent-l.freed {
			return errors.New("it says that it took slots which were never sent")
		}
		l.freed = h.freed[i]
	}
	if h.kind == kindCredit || h.kind == kindSeen {
		p.seen = p.seen || h.kind == kindSeen
		return p.giveBack(l, slot, false)
	}
	if h.seq-p.inSeq >= uint32(len(p.arrived)) {
		return fmt.Errorf("slot number %d came where %d was next", h.seq, p.inSeq)
	}
	a := &p.arrived[int(h.seq)&(len(p.arrived)-1)]
	if a.lane != nil {
		return fmt.Errorf("slot number %d came twice", h.seq)
	}
	*a = arrival{lane: l, slot: slot, header: h}
	if h.kind == kindBye {
		p.left, p.answer = true, true
	}
	return nil
}

// giveBack lets the peer use a receive slot again. Only then, and only for slots
// with data, is the peer told that it is free: no SEND is ever made without a
// posted receive. A full queue is no failure: the slot waits for the next poll.
func (p *pair) giveBack(l *lane, slot uint16, data bool) error {
	err := l.qp.PostRecv(recvID(l.class, slot), l.recvSlots[slot])
	if err == provider.ErrQueueFull && len(l.unposted) < len(l.recvSlots)-1 {
		if data {
			slot |= dataBit
		}
		l.unposted = append(l.unposted, slot)
		return nil
	}
	if err == nil && data {
		l.taken++
	}
	return err
}

// dataBit marks a slot in unposted that held data.
const dataBit = 1 << 15

// repost tries the slots that could not be posted before.
func (p *pair) repost(l *lane) error {
	for len(l.unposted) > 0 {
		slot := l.unposted[len(l.unposted)-1]
		err := l.qp.PostRecv(recvID(l.class, slot&^dataBit), l.recvSlots[slot&^dataBit])
		if err == provider.ErrQueueFull {
			return nil
		}
		if err != nil {
			return p.fail(l.rail, err)
		}
		l.unposted = l.unposted[:len(l.unposted)-1]
		if slot&dataBit != 0 {
			l.taken++
		}
	}
	return nil
}
