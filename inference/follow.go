package inference

import (
	"context"
	"errors"
	"fmt"
)

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

// errFinished: rank 0 has closed the engine.
var errFinished = errors.New("the leader has finished")

// obey is the loop of the ranks other than 0.
func (e *Engine) obey() error {
	select {
	case <-e.follow:
	case <-e.closing:
		return ErrClosed
	}
	var s step
	for {
		if err := e.rank.obeyOne(e.ctx, &s, e.info.ContextLength); err != nil {
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

// obeyOne waits for what rank 0 asks for next, and does it.
func (r *rank) obeyOne(ctx context.Context, s *step, contextLength int) error {
	if err := r.hear(ctx, r.head[:]); err != nil {
		return err
	}
	switch kind := kindOf(r.head[:]); kind {
	case kindStep:
		if err := r.receive(ctx, s, contextLength); err != nil {
			return err
		}
		return r.compute(ctx, s)
	case kindCopy:
		c, err := decodeCopy(r.head[:], r.mem.slots, contextLength)
		if err == nil {
			r.mem.copyPrefix(c)
		}
		return err
	case kindFinish:
		return errFinished
	default:
		return fmt.Errorf("rank 0 asks for something of unknown kind %d", kind)
	}
}

// receive reads the rest of a step whose head has come.
func (r *rank) receive(ctx context.Context, s *step, contextLength int) error {
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
		if err := r.hear(ctx, payload); err != nil {
			return err
		}
	}
	s.decodePayload(payload)
	if err := s.check(r.mem.slots, contextLength, r.arch.Params().Vocab, r.mem.outputs); err != nil {
		return fmt.Errorf("from rank 0: %w", err)
	}
	return nil
}
