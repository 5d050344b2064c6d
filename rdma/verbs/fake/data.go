package fake

import "daisy/rdma/verbs/provider"

// queue is the work posted on one side of a queue pair. The i-th SEND meets the
// i-th RECV of the peer. A SEND stays until it has both completed and been
// received, a RECV until it has completed.
type queue struct {
	entries  []entry // by number modulo its length, which is a power of two
	tail     int     // posted
	done     int     // completed, that is polled
	received int     // SENDs: taken by the peer
}

type entry struct {
	id       uint64
	mem      []byte // of a RECV
	stage    []byte // of a SEND, copied when it was posted
	frames   int
	signaled bool
}

// push gives a new entry's place. Room grows to what is outstanding at most and
// is used again.
func (u *queue) push() *entry {
	if u.tail-min(u.done, u.received) == len(u.entries) {
		grown := make([]entry, max(16, 2*len(u.entries)))
		for i := min(u.done, u.received); i < u.tail; i++ {
			grown[i%len(grown)] = *u.at(i)
		}
		u.entries = grown
	}
	u.tail++
	return u.at(u.tail - 1)
}

func (u *queue) at(i int) *entry { return &u.entries[i%len(u.entries)] }

func (q *qp) PostSend(id uint64, s provider.Slot, flags provider.SendFlags) error {
	q.pd.c.m.mu.Lock()
	defer q.pd.c.m.mu.Unlock()
	if q.released {
		return provider.ErrReleased
	}
	mem, frames := q.bytes(s), provider.Frames(int(s.Bytes))
	switch e := q.port.injected(CallPostSend); {
	case e == eNoMem:
		return provider.ErrQueueFull
	case e != 0:
		return q.port.fail(provider.OpPostSend, e)
	case q.state != provider.StateRTS || mem == nil || flags&provider.SendInline != 0 || frames > 4095:
		return q.port.fail(provider.OpPostSend, eInvalid)
	case q.sendFrames+frames > int(q.cap.MaxSendWR) || q.port.sendFrames+frames > q.port.options.Budget:
		return provider.ErrQueueFull
	}
	q.sendFrames += frames
	q.port.sendFrames += frames
	e := q.sends.push()
	e.id, e.frames, e.signaled = id, frames, flags&provider.SendSignaled != 0
	e.stage = append(e.stage[:0], mem...)
	return nil
}

func (q *qp) PostRecv(id uint64, s provider.Slot) error {
	q.pd.c.m.mu.Lock()
	defer q.pd.c.m.mu.Unlock()
	if q.released {
		return provider.ErrReleased
	}
	mem, frames := q.bytes(s), provider.Frames(int(s.Bytes))
	switch e := q.port.injected(CallPostRecv); {
	case e == eNoMem:
		return provider.ErrQueueFull
	case e != 0:
		return q.port.fail(provider.OpPostRecv, e)
	case q.state != provider.StateRTS || mem == nil || frames > 4095:
		return q.port.fail(provider.OpPostRecv, eInvalid)
	case q.recvFrames+frames > int(q.cap.MaxRecvWR) || q.port.recvFrames+frames > q.port.options.Budget:
		return provider.ErrQueueFull
	}
	q.recvFrames += frames
	q.port.recvFrames += frames
	e := q.recvs.push()
	e.id, e.frames, e.mem = id, frames, mem
	return nil
}

// sent gives the completions of SENDs whose RECV the peer has posted: before
// they are delivered. Frames of unsignaled ones come back with the next
// signaled one. ready counts what there was, beyond wcs too.
func (q *qp) sent(p *qp, wcs []provider.WC, ready *int) (n int) {
	failed, to := q.state == provider.StateErr, q.sends.done
	switch {
	case failed:
		to = q.sends.tail
	case p != nil && p.rqPSN == q.sqPSN:
		to = min(q.sends.tail, p.recvs.tail)
	}
	frames := 0
	for i := q.sends.done; i < to; i++ {
		e := q.sends.at(i)
		frames += e.frames
		if !e.signaled && !failed {
			continue
		}
		*ready++
		if n == len(wcs) {
			continue
		}
		status := provider.WCFlushed
		if !failed {
			status = provider.WCStatus(q.port.injected(CallSendWC))
		}
		wcs[n] = provider.WC{ID: e.id, Status: status, Opcode: provider.OpSend, QPN: q.num}
		n++
		q.sendFrames -= frames
		q.port.sendFrames -= frames
		frames = 0
		q.sends.done = i + 1
		if status != provider.WCSuccess {
			q.state = provider.StateErr
		}
	}
	return n
}

// got gives the completions of RECVs that something arrived for.
func (q *qp) got(p *qp, wcs []provider.WC, ready *int) (n int) {
	failed, to := q.state == provider.StateErr, q.recvs.done
	switch {
	case failed:
		to = q.recvs.tail
	case p != nil && p.state == provider.StateRTS && p.sqPSN == q.rqPSN:
		to = min(q.recvs.tail, p.sends.tail)
	}
	*ready += to - q.recvs.done
	for i := q.recvs.done; i < to && n < len(wcs); i++ {
		r := q.recvs.at(i)
		w := provider.WC{ID: r.id, Status: provider.WCFlushed, Opcode: provider.OpRecv, QPN: q.num}
		if !failed {
			w.Status = provider.WCStatus(q.port.injected(CallRecvWC))
			s := p.sends.at(i)
			w.Bytes = uint32(len(s.stage))
			switch {
			case w.Status != provider.WCSuccess:
			case s.frames != r.frames || len(s.stage) > len(r.mem):
				w.Status = provider.WCLocalLength
			default:
				copy(r.mem, s.stage)
			}
			p.sends.received = i + 1
		}
		wcs[n] = w
		n++
		q.recvFrames -= r.frames
		q.port.recvFrames -= r.frames
		q.recvs.done, q.recvs.received = i+1, i+1
		if w.Status != provider.WCSuccess {
			q.state = provider.StateErr
			if !failed {
				break // the next poll flushes
			}
		}
	}
	return n
}
