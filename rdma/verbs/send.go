package verbs

import (
	"daisy/rdma"
	"daisy/rdma/verbs/provider"
)

// An outgoing is a message on its way to a peer.
type outgoing struct {
	pair *pair
	tag  rdma.Tag
	rest []byte
	turn bool // this message has its turn
	done bool
}

// push posts what can be posted and reports whether that was anything.
func (m *outgoing) push() (moved bool, err error) {
	p := m.pair
	if !m.turn {
		if m.turn = p.sendTurn.TryLock(); !m.turn {
			return false, nil
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for polled := false; !m.done; {
		switch {
		case p.closed || p.saidBye:
			return moved, errClosing
		case p.left:
			return moved, p.lost
		}
		l := p.laneFor(len(m.rest))
		if l == nil {
			if polled {
				return moved, nil
			}
			if _, err := p.poll(); err != nil {
				return moved, err
			}
			polled = true
			continue
		}
		n := min(len(m.rest), shapes[l.class].SlotBytes-headerBytes)
		slot := l.free[len(l.free)-1]
		l.free = l.free[:len(l.free)-1]
		payload := l.sendMem[slot][headerBytes:]
		if l.class == bulk { // the other direction need not wait for a long copy
			p.mu.Unlock()
			copy(payload, m.rest[:n])
			p.mu.Lock()
			if p.closed || p.saidBye {
				l.free = append(l.free, slot)
				return moved, errClosing
			}
		} else {
			copy(payload, m.rest[:n])
		}
		h := header{kind: kindData, tag: m.tag, bytes: uint32(n), left: uint64(len(m.rest)), seq: p.outSeq}
		posted, err := p.post(l, slot, &h)
		if err != nil {
			return moved, err
		}
		if !posted {
			if polled {
				return moved, nil
			}
			if _, err := p.poll(); err != nil {
				return moved, err
			}
			polled = true
			continue
		}
		l.sent++
		p.outSeq++
		moved, polled = true, false
		m.rest = m.rest[n:]
		m.done = len(m.rest) == 0
	}
	return moved, nil
}

// laneFor chooses where the next slot of a message goes, of which so many bytes
// are left. Bulk slots are spread over the rails. It is nil when there is no
// credit or no free slot.
func (p *pair) laneFor(left int) *lane {
	if left <= smallBytes {
		for i := int(small); i < len(p.lanes); i += nClasses {
			if l := p.lanes[i]; l.credits() > 0 && len(l.free) > 0 {
				return l
			}
		}
		return nil
	}
	var best *lane
	for i := range p.rails {
		l := p.lanes[(p.next+i)%len(p.rails)*nClasses+int(bulk)]
		if l.credits() > 0 && len(l.free) > 0 && (best == nil || l.credits() > best.credits()) {
			best = l
		}
	}
	if best != nil {
		p.next = best.rail.index + 1
	}
	return best
}

// post sends a slot, always whole, and with it the news of slots taken. When
// the queue is full it gives the slot back and reports false; if nothing is
// outstanding that can become free, that is an error. The caller holds mu.
func (p *pair) post(l *lane, slot uint16, h *header) (posted bool, err error) {
	for i, l := range p.lanes {
		h.freed[i] = l.taken
	}
	h.put(l.sendMem[slot], p.epoch, p.checksum)
	err = l.qp.PostSend(sendID(l.class, slot), l.sendSlots[slot], provider.SendSignaled)
	if err != nil {
		l.free = append(l.free, slot)
		if err == provider.ErrQueueFull && p.sending > 0 {
			return false, nil
		}
		return false, p.fail(l.rail, err)
	}
	p.sending++
	p.posts++
	for _, l := range p.lanes {
		l.told = l.taken
	}
	return true, nil
}

// tell sends the news of slots taken by themselves, if a lane has waited for
// half its window. It reports false when that has to wait for a send slot,
// which needs nothing of the peer. The caller holds mu.
func (p *pair) tell() (told bool, err error) {
	due := false
	for _, l := range p.lanes {
		due = due || l.due()
	}
	if !due || p.left || p.saidBye {
		return true, nil
	}
	return p.control(kindCredit)
}

// control sends a slot without data on the first lane, which has slots for it.
func (p *pair) control(kind frameKind) (sent bool, err error) {
	l := p.lanes[small]
	if len(l.free) == 0 {
		if _, err := p.poll(); err != nil || len(l.free) == 0 {
			return false, err
		}
	}
	slot := l.free[len(l.free)-1]
	l.free = l.free[:len(l.free)-1]
	return p.post(l, slot, &header{kind: kind, seq: p.outSeq})
}
