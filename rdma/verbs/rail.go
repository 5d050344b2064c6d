package verbs

import (
	"errors"
	"fmt"
	"time"

	"daisy/rdma/verbs/provider"
)

// A rail is one cable between two ranks: a device, a completion queue, and a
// lane for each class of slots.
type rail struct {
	device *device
	index  int // among the rails of the pair
	kind   provider.QPType
	gid    provider.GIDEntry
	cq     provider.CQ
	lanes  [nClasses]*lane
	memory region
	frames int // of the device's budget

	// Guarded by the mutex of the pair: completions so far, and when moved
	// last looked.
	completed, looked uint64
}

// A lane is one queue pair and its slots. The mutex of the pair guards it.
type lane struct {
	rail  *rail
	class class
	qp    provider.QP

	sendMem, recvMem     [][]byte
	sendSlots, recvSlots []provider.Slot

	free     []uint16 // send slots that nothing is sent from
	unposted []uint16 // receive slots that could not be posted yet

	// Counted in slots with data, modulo 2^16.
	sent  uint16 // posted
	freed uint16 // of these, taken by the peer
	taken uint16 // of the peer's, taken and posted again
	told  uint16 // taken, as the peer was last told
}

// credits is how many slots with data may be sent.
func (l *lane) credits() int { return shapes[l.class].Window - int(l.sent-l.freed) }

// due tells that the peer must be told of slots taken.
func (l *lane) due() bool { return int(l.taken-l.told) >= shapes[l.class].Window/2 }

// newRail makes the queue pairs and brings them to INIT. Everything is made
// within the device's control lock; nothing is left after an error.
func newRail(d *device, kind provider.QPType, gid provider.GIDEntry, index, nRails int) (*rail, error) {
	if err := d.usable(); err != nil {
		return nil, err
	}
	d.mu.Lock()
	r := &rail{device: d, index: index, kind: kind, gid: gid, frames: railFrames(index, nRails)}
	if d.frames+r.frames > provider.FrameBudget && d.link == provider.LinkThunderbolt {
		d.mu.Unlock()
		return nil, fmt.Errorf("%s: %d frames are in use of the port's budget of %d: no room for %d more",
			d.name, d.frames, provider.FrameBudget, r.frames)
	}
	d.frames += r.frames
	err := r.make(nRails)
	d.mu.Unlock()
	if err != nil {
		return nil, errors.Join(err, r.free())
	}
	return r, nil
}

func (r *rail) make(nRails int) error {
	d := r.device
	pd, err := d.domain()
	if err != nil {
		return err
	}
	// Memory is registered before any queue pair goes to ready-to-receive.
	if r.memory, err = d.take(railBytes(r.index, nRails)); err != nil {
		return err
	}
	if r.cq, err = d.ctx.CreateCQ(provider.CQDepth); err != nil {
		return err
	}
	mem := r.memory.bytes()
	for c := range class(nClasses) {
		n := slots(c, r.index, nRails)
		l := &lane{rail: r, class: c}
		for i := range 2 * n {
			b := mem[:shapes[c].SlotBytes:shapes[c].SlotBytes]
			mem = mem[shapes[c].SlotBytes:]
			s := provider.NewSlot(r.memory.slab.mr, b)
			if i < n {
				l.sendMem, l.sendSlots = append(l.sendMem, b), append(l.sendSlots, s)
				l.free = append(l.free, uint16(i))
			} else {
				l.recvMem, l.recvSlots = append(l.recvMem, b), append(l.recvSlots, s)
			}
		}
		l.unposted = make([]uint16, 0, n)
		if l.qp, err = pd.CreateQP(provider.QPInit{Type: r.kind, SendCQ: r.cq, RecvCQ: r.cq, Cap: provider.QPCap{
			MaxSendWR: provider.QueueFrames, MaxRecvWR: provider.QueueFrames, MaxSendSGE: 1, MaxRecvSGE: 1,
		}}); err != nil {
			return err
		}
		r.lanes[c] = l
		_, granted, err := l.qp.Query()
		if err != nil {
			return err
		}
		if need := uint32(n * provider.Frames(shapes[c].SlotBytes)); granted.MaxSendWR < need || granted.MaxRecvWR < need {
			return fmt.Errorf("%s: a queue pair was granted %d sends and %d receives; %d of each are needed",
				d.name, granted.MaxSendWR, granted.MaxRecvWR, need)
		}
		attr, mask := provider.ToInit(port)
		if err := l.qp.Modify(attr, mask); err != nil {
			return err
		}
	}
	return nil
}

// endpoint is what the peer needs to know of a lane.
func (l *lane) endpoint(lid uint16) provider.Endpoint {
	return provider.Endpoint{QPN: l.qp.Num(), PSN: provider.PSN, LID: lid, GID: l.rail.gid.GID}
}

// connect brings the queue pairs to ready-to-send and posts all receives. It
// is tried once: the step to ready-to-receive can block in the driver.
func (r *rail) connect(attr provider.PortAttr, peer [nClasses]provider.Endpoint, limit time.Duration, quit <-chan struct{}) error {
	caller := newCaller(r.device)
	defer caller.close()
	for c, l := range r.lanes {
		a, mask := provider.ToRTR(r.kind, port, attr, r.gid, peer[c])
		if err := caller.do(limit, quit, "move a queue pair to ready-to-receive", func() error { return l.qp.Modify(a, mask) }); err != nil {
			return err
		}
	}
	for _, l := range r.lanes {
		a, mask := provider.ToRTS(r.kind, provider.PSN)
		if err := l.qp.Modify(a, mask); err != nil {
			return err
		}
		for i, s := range l.recvSlots {
			if err := l.qp.PostRecv(recvID(l.class, uint16(i)), s); err != nil {
				return fmt.Errorf("%s: posting receive %d of %d: %w", r.device.name, i+1, len(l.recvSlots), err)
			}
		}
	}
	return nil
}

// free destroys the queue pairs, gives the memory back, and destroys the
// completion queue. Nobody uses the rail any more. It blocks in the driver; a
// rail of a stuck device is left to the goroutine that is stuck.
func (r *rail) free() error {
	if r.device.abandon(r) {
		return nil
	}
	return r.release()
}

func (r *rail) release() error {
	d := r.device
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	for c := range r.lanes {
		if l := r.lanes[c]; l != nil && l.qp != nil {
			errs = append(errs, l.qp.Destroy())
		}
		r.lanes[c] = nil
	}
	err := errors.Join(errs...)
	if err == nil && r.memory.slab != nil { // a queue pair that lives may still write to it
		r.memory.slab.give(r.memory)
	}
	if r.cq != nil {
		err = errors.Join(err, r.cq.Destroy())
		r.cq = nil
	}
	d.frames -= r.frames
	return err
}
