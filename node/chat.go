package node

import (
	"context"
	"errors"
	"slices"

	"daisy/inference"
)

// Chat answers a request; see inference.Engine.Chat for how it blocks and
// streams. When a member is lost meanwhile, the answer pauses and goes on with the
// rest. When the cluster ends, what was emitted stands, and the error is a
// *NodeError that names the node at fault, if one is.
func (c *Cluster) Chat(ctx context.Context, req inference.Request, emit func(inference.Delta)) (inference.Stats, error) {
	if c.rank != 0 {
		return inference.Stats{}, ErrNotLeader
	}
	if c.ctx.Err() != nil {
		return inference.Stats{}, context.Cause(c.ctx)
	}
	r := c.newReader(ctx)
	// An engine that has ended meanwhile only says so.
	stats, err := r.on.engine.Chat(ctx, req, emit)
	for {
		var i *inference.Interrupted
		if !errors.As(err, &i) {
			return stats, err
		}
		var answer *inference.Answer
		answer, err = c.goOn(r, i)
		switch {
		case err == nil:
			stats, err = answer.Read(emit)
		case !errors.As(err, &i): // given up
			if held := i.Flush(); held != (inference.Delta{}) {
				emit(held)
			}
			return i.Stats(), err
		}
	}
}

// reader is a Chat: one request on its way through the cluster's epochs.
type reader struct {
	ticket int // readers go on in the order in which they came
	ctx    context.Context
	on     *membership // where it ran last
	paused *inference.Interrupted
	resume chan resumed // one, once the cluster goes on
}

// resumed is how an engine took the answer.
type resumed struct {
	on     *membership
	answer *inference.Answer
	err    error
}

func (c *Cluster) newReader(ctx context.Context) *reader {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tickets++
	return &reader{ticket: c.tickets, ctx: ctx, on: c.now, resume: make(chan resumed, 1)}
}

// goOn waits until the cluster goes on, and has the answer go on there.
func (c *Cluster) goOn(r *reader, i *inference.Interrupted) (*inference.Answer, error) {
	if r.ctx.Err() != nil {
		return nil, context.Cause(r.ctx)
	}
	r.paused = i
	c.mu.Lock()
	if c.now.term > r.on.term { // it goes on already
		r.on = c.now
		c.mu.Unlock()
		return r.on.engine.Resume(r.ctx, i)
	}
	c.readers = append(c.readers, r)
	c.mu.Unlock()
	select {
	case next := <-r.resume:
		r.on = next.on
		return next.answer, next.err
	case <-r.ctx.Done():
	case <-c.ctx.Done():
	}
	c.mu.Lock()
	c.readers = slices.DeleteFunc(c.readers, func(other *reader) bool { return other == r })
	c.mu.Unlock()
	if r.ctx.Err() != nil {
		return nil, context.Cause(r.ctx)
	}
	return nil, context.Cause(c.ctx)
}

// adopt makes m the cluster's membership and has the waiting answers go on there,
// in order.
func (c *Cluster) adopt(m *membership) {
	for {
		c.mu.Lock()
		ended := false
		select {
		case <-m.engine.Done(): // they wait for the next
			ended = true
		default:
		}
		if ended || len(c.readers) == 0 {
			c.now, c.without = m, nil
			c.mu.Unlock()
			return
		}
		first := slices.MinFunc(c.readers, func(a, b *reader) int { return a.ticket - b.ticket })
		c.readers = slices.DeleteFunc(c.readers, func(other *reader) bool { return other == first })
		c.mu.Unlock()
		answer, err := m.engine.Resume(first.ctx, first.paused)
		first.resume <- resumed{m, answer, err} // has room
	}
}
