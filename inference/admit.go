package inference

import (
	"context"
	"slices"
)

// admit gives free slots to waiting sequences, in order, and lets go of those
// that were cancelled. A sequence gets the slot that holds most of its prompt
// already, or else the one unused for longest; when another slot holds more, that
// part is copied.
func (e *Engine) admit(waiting []*sequence) ([]*sequence, error) {
	waiting = slices.DeleteFunc(waiting, func(q *sequence) bool {
		if q.ctx.Err() == nil {
			return false
		}
		q.finish("", context.Cause(q.ctx))
		return true
	})
	for len(waiting) > 0 {
		q := waiting[0]
		free, source := e.chooseSlot(q.prompt)
		if free == nil {
			return waiting, nil
		}
		if n := source.common(q.prompt); source != free && n-free.common(q.prompt) >= worthCopying {
			if err := e.copyPrefix(source.id, free.id, n); err != nil {
				return waiting, err
			}
			free.tokens = append(free.tokens[:0], q.prompt[:n]...)
		}
		e.clock++
		free.used = e.clock
		q.begin(free)
		waiting = waiting[1:]
	}
	return waiting, nil
}

// worthCopying is the number of tokens from which copying their keys and values
// beats computing them for certain.
const worthCopying = 16

// chooseSlot returns the free slot that is best for the prompt, nil when there is
// none, and the slot that holds most of the prompt.
func (e *Engine) chooseSlot(prompt []int32) (free, source *slot) {
	for _, s := range e.slots {
		n := s.common(prompt)
		if source == nil || n > source.common(prompt) {
			source = s
		}
		if s.seq != nil {
			continue
		}
		if free == nil || n > free.common(prompt)+worthCopying ||
			s.used < free.used && n+worthCopying >= free.common(prompt) {
			free = s
		}
	}
	return free, source
}

// copyPrefix copies the keys and values of slot from's first n tokens to slot to,
// on all ranks.
func (e *Engine) copyPrefix(from, to, n int) error {
	for !e.rank.place.First() && len(e.flights) > 0 { // which some ranks have not heard of
		if err := e.land(); err != nil {
			return err
		}
	}
	c := prefixCopy{from, to, n}
	c.encode(e.rank.head[:])
	if err := e.rank.tellAll(e.ctx, e.rank.head[:]); err != nil {
		return err
	}
	e.rank.mem.copyPrefix(c)
	return nil
}
