package inference

import (
	"context"
	"errors"
	"slices"
	"time"

	"daisy/inference/model"
)

// lead is rank 0's loop: it takes requests, makes steps for all ranks, samples.
// It returns ErrClosed after Close, or why the group ended.
func (e *Engine) lead() error {
	var waiting []*sequence
	var err error
	stop := e.startCollecting()
	for err == nil {
		if len(e.flights) == len(e.rank.plan.Stages) {
			if err = e.land(); err != nil {
				break
			}
		}
		if waiting, err = e.receive(waiting); err != nil {
			break
		}
		if waiting, err = e.admit(waiting); err != nil {
			break
		}
		e.dropCancelled()
		if e.nextStep(); len(e.batch.runs) > 0 {
			err = e.launch()
		} else if len(e.flights) > 0 {
			err = e.land()
		}
	}
	err = e.reason(err)
	for errors.Is(err, ErrClosed) && len(e.flights) > 0 && e.land() == nil {
	}
	for _, q := range waiting {
		q.interrupt(err)
	}
	for _, s := range e.slots {
		if s.seq != nil {
			s.seq.interrupt(err)
		}
	}
	if errors.Is(err, ErrClosed) {
		e.sayFinished()
	} else {
		e.rank.group.Abort(err)
	}
	stop()
	return err
}

// receive takes the requests that have come; without any work it waits.
func (e *Engine) receive(waiting []*sequence) ([]*sequence, error) {
	idle := len(waiting) == 0 && len(e.flights) == 0
	for _, s := range e.slots {
		idle = idle && s.seq == nil
	}
	for {
		if idle {
			select {
			case q := <-e.requests:
				waiting, idle = append(waiting, q), false
			case <-e.closing:
				return waiting, ErrClosed
			case <-e.rank.group.Done():
				return waiting, e.rank.group.Err()
			}
			continue
		}
		select {
		case q := <-e.requests:
			waiting = append(waiting, q)
		case <-e.closing:
			return waiting, ErrClosed
		default:
			return waiting, nil
		}
	}
}

func (e *Engine) dropCancelled() {
	for _, s := range e.slots {
		if s.seq != nil && s.seq.ctx.Err() != nil {
			s.seq.finish("", context.Cause(s.seq.ctx))
		}
	}
}

// nextStep makes the batch: one token of every sequence that decodes, then
// prefill. e.who[i] is the sequence of output i.
func (e *Engine) nextStep() {
	s := &e.batch
	s.runs, s.tokens, s.outputs, e.who = s.runs[:0], s.tokens[:0], s.outputs[:0], e.who[:0]
	kv := 0 // one for all that decode, so that attention takes them together
	for _, sl := range e.slots {
		if sl.decodes() {
			kv = max(kv, e.paddedKV(len(sl.tokens)+1, 256)) // so that passes last
		}
	}
	room := e.decodeRoom()
	for _, sl := range e.slots {
		if sl.decodes() && room > 0 {
			e.add(sl.seq, 1, kv)
			room--
		}
	}
	e.addPrefill()
}

// decodeRoom is how many sequences decode in one step: all of them, or with
// several stages a part, so that each stage has a step to compute.
func (e *Engine) decodeRoom() int {
	n, stages := 0, len(e.rank.plan.Stages)
	for _, sl := range e.slots {
		if sl.seq != nil && len(sl.seq.pending) <= 1 {
			n++
		}
	}
	return (n + stages - 1) / stages
}

// addPrefill fills the batch up with prefill: all of a batch, or while others
// decode one chunk. The prompt with least left goes first, so that a short one
// never waits for a long one; of a long one at most a chunk goes in while others
// wait, so that it does not stand still either.
func (e *Engine) addPrefill() {
	s := &e.batch
	room := maxBatch - len(s.tokens)
	if len(s.tokens) > 0 || len(e.rank.plan.Stages) > 1 { // small steps, so that stages overlap
		room = min(room, chunk)
	}
	e.prefilling = e.prefilling[:0]
	for _, sl := range e.slots {
		if sl.seq != nil && len(sl.seq.pending) > 1 {
			e.prefilling = append(e.prefilling, sl)
		}
	}
	slices.SortStableFunc(e.prefilling, func(a, b *slot) int { return len(a.seq.pending) - len(b.seq.pending) })
	for i, sl := range e.prefilling {
		n := min(len(sl.seq.pending), room)
		if waiting := len(e.prefilling) - i - 1; waiting > 0 {
			n = min(n, max(1, room/(waiting+1))) // a share for each that follows
		}
		if n > 0 {
			e.add(sl.seq, n, e.paddedKV(len(sl.tokens)+n, 32))
			room -= n
		}
	}
}

// add puts n of the sequence's pending tokens into the batch.
func (e *Engine) add(q *sequence, n, kv int) {
	s := &e.batch
	start := len(q.slot.tokens)
	if n == len(q.pending) {
		s.outputs = append(s.outputs, int32(len(s.tokens)+n-1))
		e.who = append(e.who, q)
	}
	s.runs = append(s.runs, model.Run{Slot: q.slot.id, Start: start, N: n, KV: kv})
	s.tokens = append(s.tokens, q.pending[:n]...)
	q.slot.tokens = append(q.slot.tokens, q.pending[:n]...)
	q.pending = q.pending[n:]
}

// chunk is the most prefill in a step that also decodes.
const chunk = 128

// paddedKV rounds up how far attention looks to a multiple of step.
func (e *Engine) paddedKV(n, step int) int {
	return min((n+step-1)/step*step, e.info.ContextLength)
}

// sayFinished lets the other ranks' Follow return. It is a courtesy: the end of
// the group tells them too.
func (e *Engine) sayFinished() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	head := e.rank.head[:]
	clear(head)
	head[0] = kindFinish
	_ = e.rank.tellAll(ctx, head)
}
