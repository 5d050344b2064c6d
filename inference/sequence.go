package inference

import (
	"context"
	"math"
	"time"

	"daisy/inference/sample"
)

// slot is one sequence's part of the KV cache. It keeps what it holds after a
// request, for the next one that begins alike.
type slot struct {
	id     int
	tokens []int32 // whose keys and values are cached, by position
	seq    *sequence
	used   int // when a sequence last began here, by the engine's clock
}

// decodes tells whether the slot's sequence has one token to compute.
func (s *slot) decodes() bool { return s.seq != nil && len(s.seq.pending) == 1 }

// common counts the leading tokens of prompt that the slot holds.
func (s *slot) common(prompt []int32) int {
	n := 0
	for n < len(prompt) && n < len(s.tokens) && prompt[n] == s.tokens[n] {
		n++
	}
	return n
}

// sequence is one request on its way through the engine. The loop owns it until
// it closes out.
type sequence struct {
	ctx     context.Context
	prompt  []int32 // what comes before the next token: of an answer that goes on, also its tokens so far
	max     int     // tokens of the whole answer
	end     func(id int32) bool
	banEnd  []int32 // tokens that end an answer, when those are banned
	sampler *sample.Sampler

	slot    *slot
	pending []int32 // tokens not in the KV cache yet: the prompt's rest, then the last sampled
	last    [1]int32
	started time.Time
	first   time.Time     // token, since it began here
	decoded time.Duration // before it began here
	stats   Stats
	err     error
	// finished: out is closed, and what is still under way for the sequence is of
	// no use any more.
	finished bool
	// interrupted: the engine ended, not the answer.
	interrupted bool
	goesOn      bool // its next token is not the answer's first, but the first here
	again       int  // tokens to prefill for that

	times []time.Time // when each token was sampled; kept where it has room

	out chan int32 // sampled tokens; holds max, so the loop never waits
}

// begin gives the sequence its slot.
func (q *sequence) begin(s *slot) {
	n := min(s.common(q.prompt), len(q.prompt)-1) // one token must be computed for its logits
	s.tokens = s.tokens[:n]
	s.seq, q.slot = q, s
	q.pending = q.prompt[n:]
	if q.goesOn {
		q.again = len(q.prompt) - n
	} else {
		q.stats.PromptTokens, q.stats.CachedTokens = len(q.prompt), n
	}
	q.started = time.Now()
}

// finish hands the sequence back to its caller and frees the slot.
func (q *sequence) finish(reason StopReason, err error) {
	q.stats.Stop, q.err, q.finished = reason, err, true
	if q.slot != nil {
		q.slot.seq = nil
	}
	close(q.out)
}

// interrupt is finish for when the engine ends.
func (q *sequence) interrupt(err error) {
	q.interrupted = true
	q.finish("", err)
}

// sampled takes the next token from the logits of the sequence's last one, and
// finishes the sequence when it ends there.
func (q *sequence) sampled(logits []float32, ctx int) {
	for _, id := range q.banEnd {
		logits[id] = float32(math.Inf(-1))
	}
	id := q.sampler.Sample(logits)
	q.sampler.Accept(id)
	now := time.Now()
	switch {
	case q.goesOn:
		q.goesOn, q.first, q.decoded = false, now, q.stats.Decode
		q.stats.Resumed.Times++
		q.stats.Resumed.Tokens += q.again
		q.stats.Resumed.Prefill += now.Sub(q.started)
	case q.stats.GeneratedTokens == 0:
		q.first = now
		q.stats.Prefill = now.Sub(q.started)
	}
	q.stats.Decode = q.decoded + now.Sub(q.first)
	if len(q.times) < cap(q.times) {
		q.times = append(q.times, now)
	}
	if q.end(id) && q.banEnd == nil {
		q.finish(StopEnd, nil)
		return
	}
	q.stats.GeneratedTokens++
	q.out <- id
	switch {
	case len(q.slot.tokens) == ctx:
		q.finish(StopFull, nil)
		return
	case q.stats.GeneratedTokens == q.max:
		q.finish(StopLength, nil)
		return
	}
	q.last[0] = id
	q.pending = q.last[:]
}
