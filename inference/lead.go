package inference

import (
	"context"
	"errors"
	"fmt"
	"time"

	"daisy/inference/model"
)

// lead is rank 0's loop: it takes requests, makes steps for all ranks, samples.
// It returns ErrClosed after Close, or why the group ended.
func (e *Engine) lead() error {
	var waiting []*sequence
	var err error
	for err == nil {
		if waiting, err = e.receive(waiting); err != nil {
			break
		}
		waiting = e.admit(waiting)
		e.dropCancelled()
		if s, who := e.nextStep(); len(s.runs) > 0 {
			err = e.lockstep(s, who)
		}
	}
	for _, q := range waiting {
		q.finish("", err)
	}
	for _, s := range e.slots {
		if s.seq != nil {
			s.seq.finish("", err)
		}
	}
	if errors.Is(err, ErrClosed) {
		e.sayFinished()
	}
	return err
}

// receive takes the requests that have come; without any work it waits.
func (e *Engine) receive(waiting []*sequence) ([]*sequence, error) {
	idle := len(waiting) == 0
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

// admit gives free slots to waiting sequences, in order, each the slot that
// already holds most of its prompt.
func (e *Engine) admit(waiting []*sequence) []*sequence {
	for len(waiting) > 0 {
		q := waiting[0]
		if q.ctx.Err() != nil {
			q.finish("", context.Cause(q.ctx))
			waiting = waiting[1:]
			continue
		}
		var best *slot
		for _, s := range e.slots {
			if s.seq == nil && (best == nil || s.common(q.prompt) > best.common(q.prompt)) {
				best = s
			}
		}
		if best == nil {
			return waiting
		}
		q.begin(best)
		waiting = waiting[1:]
	}
	return waiting
}

func (e *Engine) dropCancelled() {
	for _, s := range e.slots {
		if s.seq != nil && s.seq.ctx.Err() != nil {
			s.seq.finish("", context.Cause(s.seq.ctx))
		}
	}
}

// nextStep makes the batch: one token of every sequence that decodes, then as
// much prefill as fits. who[i] is the sequence of output i.
func (e *Engine) nextStep() (s step, who []*sequence) {
	add := func(q *sequence, n int) {
		start := len(q.slot.tokens)
		if n == len(q.pending) {
			s.outputs = append(s.outputs, int32(len(s.tokens)+n-1))
			who = append(who, q)
		}
		s.runs = append(s.runs, model.Run{Slot: q.slot.id, Start: start, N: n, KV: e.paddedKV(start + n)})
		s.tokens = append(s.tokens, q.pending[:n]...)
		q.slot.tokens = append(q.slot.tokens, q.pending[:n]...)
		q.pending = q.pending[n:]
	}
	for _, sl := range e.slots {
		if sl.seq != nil && len(sl.seq.pending) == 1 {
			add(sl.seq, 1)
		}
	}
	for _, sl := range e.slots {
		if sl.seq != nil && len(sl.seq.pending) > 1 {
			if n := min(len(sl.seq.pending), maxBatch-len(s.tokens)); n > 0 {
				add(sl.seq, n)
			}
		}
	}
	return s, who
}

// paddedKV rounds up how far attention looks, so that passes are reused.
func (e *Engine) paddedKV(n int) int {
	const step = 256
	return min((n+step-1)/step*step, e.info.ContextLength)
}

// lockstep runs the step on all ranks and samples.
func (e *Engine) lockstep(s step, who []*sequence) error {
	if err := e.rank.announce(e.ctx, &s); err != nil {
		return err
	}
	if err := e.rank.compute(e.ctx, &s); err != nil {
		return err
	}
	vocab := e.rank.arch.Params().Vocab
	for i, q := range who {
		q.sampled(e.rank.logits[i*vocab:(i+1)*vocab], e.info.ContextLength)
	}
	return nil
}

// announce sends the step from rank 0 to the others.
func (r *rank) announce(ctx context.Context, s *step) error {
	if r.group.WorldSize() == 1 {
		return nil
	}
	r.payload = s.encode(r.head[:], r.payload)
	if err := r.group.Broadcast(ctx, 0, r.head[:]); err != nil {
		return err
	}
	if s.inHead() {
		return nil
	}
	return r.group.Broadcast(ctx, 0, r.payload)
}

// sayFinished lets the other ranks' Follow return. It is a courtesy: the end of
// the group tells them too.
func (e *Engine) sayFinished() {
	if e.rank.group.WorldSize() == 1 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	head := e.rank.head[:]
	clear(head)
	head[0] = kindFinish
	_ = e.rank.group.Broadcast(ctx, 0, head)
}

// Follow serves a rank other than 0: it computes what rank 0 asks for until rank
// 0 closes its engine (nil), ctx ends, or the group fails. It may be called once.
func (e *Engine) Follow(ctx context.Context) error {
	if e.info.Rank == 0 {
		return errors.New("rank 0 leads, it does not follow")
	}
	stop := context.AfterFunc(ctx, func() { e.cancel(context.Cause(ctx)) })
	defer stop()
	e.follow <- struct{}{}
	<-e.done
	if errors.Is(e.err, errFinished) {
		return nil
	}
	return e.err
}

// obey is the loop of the ranks other than 0.
func (e *Engine) obey() error {
	select {
	case <-e.follow:
	case <-e.closing:
		return ErrClosed
	}
	var s step
	for {
		if err := e.rank.receive(e.ctx, &s, e.info.ContextLength); err != nil {
			return e.reason(err)
		}
		if err := e.rank.compute(e.ctx, &s); err != nil {
			return e.reason(err)
		}
	}
}

// reason prefers why the collective was cancelled to the fact that it was.
func (e *Engine) reason(err error) error {
	if cause := context.Cause(e.ctx); cause != nil && errors.Is(err, context.Canceled) {
		return cause
	}
	return err
}

// receive waits for rank 0's next step.
func (r *rank) receive(ctx context.Context, s *step, contextLength int) error {
	if err := r.group.Broadcast(ctx, 0, r.head[:]); err != nil {
		return err
	}
	rest, err := s.decodeHead(r.head[:], r.mem.slots)
	if err != nil {
		return err
	}
	payload := r.head[headFixed:]
	if rest > 0 {
		if cap(r.payload) < rest {
			r.payload = make([]byte, rest)
		}
		payload = r.payload[:rest]
		if err := r.group.Broadcast(ctx, 0, payload); err != nil {
			return err
		}
	}
	s.decodePayload(payload)
	if err := s.check(r.mem.slots, contextLength, r.arch.Params().Vocab, r.mem.outputs); err != nil {
		return fmt.Errorf("from rank 0: %w", err)
	}
	return nil
}
