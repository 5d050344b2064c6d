package inference

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"daisy/inference/sample"
)

// Measure runs one round of a benchmark: sequences prompts of exactly prompt
// tokens, which no round before had, and for each exactly gen tokens, the end of
// a sequence banned. Sequences up to Options.Sequences run together. It returns
// the tokens per second of prefill and of decode, over all sequences: decode
// counts the tokens sampled after all prompts are through, prefill is 0 for more
// than one sequence.
func (e *Engine) Measure(ctx context.Context, round, sequences, prompt, gen int) (prefill, decode float64, err error) {
	if prompt < 1 || gen < 2 || prompt+gen-1 > e.info.ContextLength {
		return 0, 0, fmt.Errorf("%d + %d tokens in a context of %d: %w", prompt, gen, e.info.ContextLength, ErrContextFull)
	}
	if sequences < 1 || sequences > len(e.slots) {
		return 0, 0, fmt.Errorf("%d sequences at once, the engine has room for %d", sequences, len(e.slots))
	}
	rng := rand.New(rand.NewPCG(uint64(round), 0))
	queue := make([]*sequence, sequences)
	for i := range queue {
		ids := make([]int32, prompt)
		for j := range ids {
			ids[j] = rng.Int32N(int32(e.tokens.VocabSize()))
		}
		ids[0] = int32((round*sequences + i) % e.tokens.VocabSize())
		queue[i] = &sequence{ctx: ctx, prompt: ids, max: gen, end: e.tokens.IsEOG, banEnd: e.ends,
			sampler: sample.New(sample.Params{}), out: make(chan int32, gen), times: make([]time.Time, 0, gen)}
		if err := e.submit(ctx, queue[i]); err != nil {
			return 0, 0, err
		}
	}
	// From when the last of them has its first token until the first of them has
	// its last one, all decode, one token each in every step.
	var from, to time.Time
	for _, q := range queue {
		for range q.out {
		}
		if q.err != nil {
			return 0, 0, q.err
		}
		if begun := q.times[0]; begun.After(from) {
			from = begun
		}
		if ended := q.times[gen-1]; to.IsZero() || ended.Before(to) {
			to = ended
		}
	}
	steps := 0
	for _, t := range queue[sequences-1].times {
		if t.After(from) && !t.After(to) {
			steps++
		}
	}
	if sequences == 1 {
		prefill = queue[0].stats.PrefillTokensPerSecond()
	}
	return prefill, perSecond(steps*sequences, to.Sub(from)), nil
}
