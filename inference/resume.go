package inference

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
)

// Interrupted is the error of a request whose engine ended before its answer did.
// It holds all that the answer needs to go on: the prompt's and the answer's
// tokens, the sampler as it was after the last of them, and what the decoder of the
// text holds back, such as half a character. A request that had not begun yet, or
// waited its turn, has only itself.
type Interrupted struct {
	// Cause is why the engine ended.
	Cause       error
	fingerprint string // of the model
	taken       atomic.Bool
	soFar
}

func (i *Interrupted) Error() string { return i.Cause.Error() }

// Unwrap gives the Cause.
func (i *Interrupted) Unwrap() error { return i.Cause }

// Stats is what Chat returned with it.
func (i *Interrupted) Stats() Stats { return i.stats }

// Flush gives what was held back, because it could have become a stop string, a tag
// or a character. Whoever does not let the answer go on shows it; it cannot go on
// afterwards.
func (i *Interrupted) Flush() Delta {
	if i.taken.Swap(true) {
		return Delta{}
	}
	return Delta(i.text.Flush())
}

var errTaken = errors.New("the answer goes on already, or was given up")

// Resume lets an interrupted answer go on, on rank 0 of another engine of the same
// model file (else ErrOtherModel), and returns when the engine has taken it:
// answers run in the order in which they were taken. The tokens so far are
// prefilled in chunks, and the next is sampled as if nothing had happened. Reading
// the Answer gives only what had not been emitted yet.
//
// An interrupted answer goes on once. When this engine ends too, the error is an
// *Interrupted of its own; after any other error the given one is as it was.
//
// With a shorter context than before, an answer that has no token yet begins anew,
// its oldest turns making room; one that does not fit any more ends with StopFull.
func (e *Engine) Resume(ctx context.Context, i *Interrupted) (*Answer, error) {
	if err := e.mustLead(); err != nil {
		return nil, err
	}
	if i.fingerprint != e.fingerprint {
		return nil, fmt.Errorf("the answer began with %w", ErrOtherModel)
	}
	if i.taken.Swap(true) {
		return nil, errTaken
	}
	a, err := e.resume(ctx, i.soFar)
	var again *Interrupted
	if err != nil && !errors.As(err, &again) {
		i.taken.Store(false)
	}
	return a, err
}

func (e *Engine) resume(ctx context.Context, s soFar) (*Answer, error) {
	if len(s.generated) == 0 {
		return e.start(ctx, s.req)
	}
	if len(s.prompt)+len(s.generated) > e.info.ContextLength {
		q := &sequence{stats: s.stats, out: make(chan int32)}
		q.finish(StopFull, nil)
		return &Answer{engine: e, cancel: func() {}, seq: q, soFar: s}, nil
	}
	return e.take(ctx, e.sequenceOf(s), s)
}
