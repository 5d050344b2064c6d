package rdma

import (
	"context"
	"fmt"
	"sync/atomic"
)

// A lane is a queue of operations of which one runs at a time: the collectives
// of a group, or what goes to one peer, or what comes from one peer. It also
// watches the context of the running operation, and does so without allocating
// when callers keep passing contexts of the same parentage: the registration
// with the context outlives the operation and is reused.
type lane struct {
	group *Group
	// turn holds a token while an operation runs; whoever put it there owns
	// the fields below.
	turn chan struct{}
	done <-chan struct{} // of the context registered last
	stop func() bool     // takes that registration back
	id   uint64          // numbers the registrations
	// running is the registration whose operation runs, 0 when none does; op is
	// which operation that is, for the error.
	running atomic.Uint64
	op      atomic.Uint32
}

func (l *lane) init(g *Group) {
	l.group = g
	l.turn = make(chan struct{}, 1)
}

// enter waits for the lane and starts an operation. When it returns an error,
// nothing has started, nothing was sent and the group is as before.
func (l *lane) enter(ctx context.Context, op Op) error {
	select {
	case l.turn <- struct{}{}:
	default:
		select {
		case l.turn <- struct{}{}:
		case <-ctx.Done():
			return contextError(ctx)
		case <-l.group.Done():
			return l.group.Err()
		}
	}
	if err := l.group.Err(); err != nil {
		<-l.turn
		return err
	}
	done := ctx.Done()
	if done == nil {
		return nil
	}
	if done != l.done {
		l.register(ctx)
	}
	// First the mark, then the look at the context: a cancellation finds the
	// mark or is found here.
	l.op.Store(uint32(op))
	l.running.Store(l.id)
	if ctx.Err() != nil {
		l.leave()
		return contextError(ctx)
	}
	return nil
}

// register asks ctx to call back. Contexts are told apart by their channel,
// since they need not be comparable.
func (l *lane) register(ctx context.Context) {
	if l.stop != nil {
		l.stop()
	}
	l.id++
	id := l.id
	l.done = ctx.Done()
	l.stop = context.AfterFunc(ctx, func() {
		if l.running.Load() == id {
			l.group.transport.Abort(&cutOff{Op(l.op.Load()), contextError(ctx)})
		}
	})
}

func (l *lane) leave() {
	l.running.Store(0)
	<-l.turn
}

// release takes the registration back once the group has ended. It waits for
// an operation that is just returning.
func (l *lane) release() {
	l.turn <- struct{}{}
	if l.stop != nil {
		l.stop()
		l.stop, l.done = nil, nil
	}
	<-l.turn
}

// contextError keeps both what happened and, where its owner gave one, why.
func contextError(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if cause == nil || cause == err {
		return err
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// cutOff is the cause when an operation's context was done before it was.
type cutOff struct {
	op  Op
	err error
}

func (e *cutOff) Error() string { return fmt.Sprintf("%v: %v", e.op, e.err) }
func (e *cutOff) Unwrap() error { return e.err }

// named says which operation failed, unless the error says so.
func named(op Op, err error) error {
	if c, ok := err.(*cutOff); ok && c.op == op {
		return err
	}
	return fmt.Errorf("%v: %w", op, err)
}
