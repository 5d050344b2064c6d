package inference

import (
	"context"
	"errors"
	"fmt"

	"daisy/inference/sample"
	"daisy/inference/stream"
)

// Chat answers a request on rank 0. It blocks until the answer has ended and
// calls emit, in order and from this goroutine, with text as it comes. When ctx
// ends or the engine does, what was emitted stands, Stats counts it, and the
// error says why. Requests beyond Options.Sequences wait their turn.
//
// When the engine ends, by Close or because the group did, the error is an
// *Interrupted, with which the answer can go on; errors.Is and errors.As find
// the cause through it.
func (e *Engine) Chat(ctx context.Context, req Request, emit func(Delta)) (Stats, error) {
	a, err := e.start(ctx, req)
	if err != nil {
		return Stats{}, err
	}
	return a.Read(emit)
}

// An Answer is a request that an engine has taken. Read must be called, once.
type Answer struct {
	engine *Engine
	cancel context.CancelFunc
	seq    *sequence
	soFar
}

// soFar is what an answer has come to; it is not bound to an engine. The goroutine
// that reads the answer owns it, but for the sampler, which is the loop's until the
// sequence's out is closed.
type soFar struct {
	req       Request
	prompt    []int32
	generated []int32
	sampler   *sample.Sampler
	text      *stream.Decoder // has had all of generated
	stats     Stats
}

// start has the engine take a request.
func (e *Engine) start(ctx context.Context, req Request) (*Answer, error) {
	q, s, err := e.newSequence(ctx, req)
	if err != nil {
		return nil, err
	}
	return e.take(ctx, q, s)
}

// take hands a sequence to the loop.
func (e *Engine) take(ctx context.Context, q *sequence, s soFar) (*Answer, error) {
	a := &Answer{engine: e, seq: q, soFar: s}
	ctx, a.cancel = context.WithCancel(ctx)
	q.ctx = ctx
	if err := e.submit(ctx, q); err != nil {
		if ctx.Err() == nil {
			err = &Interrupted{Cause: err, fingerprint: e.fingerprint, soFar: s}
		}
		a.cancel()
		return nil, err
	}
	return a, nil
}

// Read blocks until the answer has ended; see Chat.
func (a *Answer) Read(emit func(Delta)) (Stats, error) {
	defer a.cancel()
	show := func(d stream.Delta) {
		if !d.Empty() {
			emit(Delta(d))
		}
	}
	tokens, q := a.engine.tokens, a.seq
	var piece []byte
	for id := range q.out {
		if a.text.Stopped() {
			continue // the loop has not seen the cancellation yet
		}
		a.generated = append(a.generated, id)
		if tokens.IsControl(id) {
			show(a.text.Control(tokens.TokenText(id)))
		} else {
			piece = tokens.AppendPiece(piece[:0], id)
			show(a.text.Write(piece))
		}
		if a.text.Stopped() {
			a.cancel()
		}
	}
	a.stats = q.stats
	switch {
	case a.text.Stopped():
		a.stats.Stop = StopEnd
		return a.stats, nil
	case q.interrupted:
		return a.stats, &Interrupted{Cause: q.err, fingerprint: a.engine.fingerprint, soFar: a.soFar}
	}
	show(a.text.Flush())
	return a.stats, q.err
}

// submit hands the sequence to the loop.
func (e *Engine) submit(ctx context.Context, q *sequence) error {
	select {
	case e.requests <- q:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-e.done:
		return e.err
	}
}

// newSequence checks and prepares a request.
func (e *Engine) newSequence(ctx context.Context, req Request) (*sequence, soFar, error) {
	if err := e.mustLead(); err != nil {
		return nil, soFar{}, err
	}
	if err := req.Sampling.Validate(); err != nil {
		return nil, soFar{}, err
	}
	p, err := e.prompt(ctx, req)
	if err != nil {
		return nil, soFar{}, err
	}
	if len(p.tokens) == 0 {
		return nil, soFar{}, errors.New("the prompt is empty")
	}
	if len(p.tokens) >= e.info.ContextLength {
		return nil, soFar{}, fmt.Errorf("the prompt has %d tokens, the context %d: %w", len(p.tokens), e.info.ContextLength, ErrContextFull)
	}
	s := soFar{req: req, prompt: p.tokens, sampler: sample.New(req.Sampling), text: stream.New(p.reading)}
	s.stats.DroppedMessages = p.dropped
	q := e.sequenceOf(s)
	q.ctx = ctx
	return q, s, nil
}

func (e *Engine) mustLead() error {
	if e.info.Rank != 0 {
		return fmt.Errorf("rank %d follows; requests go to rank 0", e.info.Rank)
	}
	return nil
}

// sequenceOf is the loop's side of an answer, which must fit into the context.
func (e *Engine) sequenceOf(s soFar) *sequence {
	q := &sequence{
		prompt: append(s.prompt[:len(s.prompt):len(s.prompt)], s.generated...),
		max:    e.info.ContextLength - len(s.prompt) + 1, end: e.tokens.IsEOG,
		sampler: s.sampler, stats: s.stats, goesOn: len(s.generated) > 0,
	}
	if s.req.MaxTokens > 0 {
		q.max = min(q.max, s.req.MaxTokens)
	}
	if s.req.IgnoreEnd {
		q.banEnd = e.ends
	}
	q.out = make(chan int32, q.max-len(s.generated))
	return q
}
