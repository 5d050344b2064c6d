package verbs

import "daisy/rdma"

// An incoming is a message that is being received.
type incoming struct {
	pair   *pair
	tag    rdma.Tag
	rest   []byte
	turn   bool // this message has its turn
	copied bool // all of it is there
	done   bool // and the peer has been told of free slots, if that was due
}

// pull takes what has arrived of the message and reports whether that was
// anything.
func (m *incoming) pull() (moved bool, err error) {
	p := m.pair
	if !m.turn {
		if m.turn = p.recvTurn.TryLock(); !m.turn {
			return false, nil
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for !m.copied {
		if p.closed {
			return moved, errClosing
		}
		a := &p.arrived[int(p.inSeq)&(len(p.arrived)-1)]
		if a.lane == nil {
			any, err := p.poll()
			if err != nil && a.lane == nil { // what came before the failure counts
				return moved, err
			}
			if a.lane == nil {
				if !any {
					break
				}
				continue
			}
		}
		if a.kind == kindBye { // it stays for later calls
			return moved, p.lost
		}
		if a.tag != m.tag || a.left != uint64(len(m.rest)) {
			return moved, &rdma.MismatchError{Rank: p.peer, Got: a.tag, Want: m.tag,
				GotBytes: a.left, WantBytes: uint64(len(m.rest))}
		}
		payload := a.lane.recvMem[a.slot][headerBytes:][:a.bytes]
		if a.lane.class == bulk { // the other direction need not wait for a long copy
			p.mu.Unlock()
			copy(m.rest, payload)
			p.mu.Lock()
		} else {
			copy(m.rest, payload)
		}
		m.rest = m.rest[len(payload):]
		m.copied = len(m.rest) == 0
		lane, slot := a.lane, a.slot
		a.lane = nil
		p.inSeq++
		moved = true
		if p.failed == nil {
			if err := p.giveBack(lane, slot, true); err != nil {
				p.fail(lane.rail, err) // the next poll gives it; this message may be complete
			}
		}
		if lane.due() {
			if _, err := p.told(); err != nil {
				return moved, err
			}
		}
	}
	if !m.copied {
		return moved, nil
	}
	told, err := p.told()
	m.done = told || err != nil
	return moved || told, nil
}

// told is tell, but once the pair has failed there is nobody to tell: what was
// received is good all the same.
func (p *pair) told() (bool, error) {
	if p.failed != nil {
		return true, nil
	}
	return p.tell()
}
