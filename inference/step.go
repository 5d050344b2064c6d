package inference

import (
	"encoding/binary"
	"fmt"
	"slices"

	"daisy/inference/model"
)

// A step is what all ranks compute together: a batch of tokens from one or more
// sequences. Rank 0 makes it and sends it to the others.
type step struct {
	runs    []model.Run
	tokens  []int32 // of all runs, one after the other
	outputs []int32 // batch indices that want logits, ascending
}

func (s *step) clone() step {
	return step{slices.Clone(s.runs), slices.Clone(s.tokens), slices.Clone(s.outputs)}
}

// The wire form of a step, little endian: a head of headBytes, and when the
// payload does not fit into the head, the payload as a second message.
//
//	head:    u32 kind | u32 runs | u32 tokens | u32 outputs | payload...
//	payload: runs * (u32 slot, start, n, kv) | tokens * i32 | outputs * i32
//
// A decode step of a few sequences travels in the head alone.
const (
	headBytes  = 256
	headFixed  = 16
	kindStep   = 1
	kindFinish = 2 // rank 0 closes the engine
	kindCopy   = 3 // u32 from, to, tokens: see prefixCopy
)

func kindOf(head []byte) uint32 { return binary.LittleEndian.Uint32(head) }

// prefixCopy asks all ranks to copy the keys and values of a slot's first tokens
// to another slot.
type prefixCopy struct{ from, to, tokens int }

func (c prefixCopy) encode(head []byte) {
	clear(head)
	for i, x := range [4]int{kindCopy, c.from, c.to, c.tokens} {
		binary.LittleEndian.PutUint32(head[4*i:], uint32(x))
	}
}

func decodeCopy(head []byte, slots, ctx int) (prefixCopy, error) {
	at := func(i int) int { return int(binary.LittleEndian.Uint32(head[4*i:])) }
	c := prefixCopy{at(1), at(2), at(3)}
	if c.from >= slots || c.to >= slots || c.from == c.to || c.tokens > ctx {
		return c, fmt.Errorf("copy of %d tokens from slot %d to %d is out of bounds", c.tokens, c.from, c.to)
	}
	return c, nil
}

func (s *step) payloadBytes() int { return 16*len(s.runs) + 4*len(s.tokens) + 4*len(s.outputs) }

// inHead tells whether the payload travels in the head.
func (s *step) inHead() bool { return s.payloadBytes() <= headBytes-headFixed }

// encode writes the step into head (headBytes long) and, if it does not fit
// there, its payload into buf, which is returned, grown as needed.
func (s *step) encode(head, buf []byte) (payload []byte) {
	le := binary.LittleEndian
	clear(head)
	le.PutUint32(head[0:], kindStep)
	le.PutUint32(head[4:], uint32(len(s.runs)))
	le.PutUint32(head[8:], uint32(len(s.tokens)))
	le.PutUint32(head[12:], uint32(len(s.outputs)))
	out := buf[:0]
	if s.inHead() {
		out = head[headFixed:headFixed]
	}
	for _, r := range s.runs {
		for _, x := range [4]int{r.Slot, r.Start, r.N, r.KV} {
			out = le.AppendUint32(out, uint32(x))
		}
	}
	for _, list := range [2][]int32{s.tokens, s.outputs} {
		for _, x := range list {
			out = le.AppendUint32(out, uint32(x))
		}
	}
	if s.inHead() {
		return buf
	}
	return out
}

// decodeHead reads the counts of a step; rest is the length of the payload
// message that follows, 0 when the payload is in the head.
func (s *step) decodeHead(head []byte, slots int) (rest int, err error) {
	le := binary.LittleEndian
	runs, tokens, outputs := le.Uint32(head[4:]), le.Uint32(head[8:]), le.Uint32(head[12:])
	if runs < 1 || runs > uint32(slots) || tokens < 1 || tokens > maxBatch || outputs > tokens {
		return 0, fmt.Errorf("step of %d runs, %d tokens, %d outputs is out of bounds", runs, tokens, outputs)
	}
	s.runs = append(s.runs[:0], make([]model.Run, runs)...)
	s.tokens = append(s.tokens[:0], make([]int32, tokens)...)
	s.outputs = append(s.outputs[:0], make([]int32, outputs)...)
	if s.inHead() {
		return 0, nil
	}
	return s.payloadBytes(), nil
}

// decodePayload reads what decodeHead has made room for.
func (s *step) decodePayload(p []byte) {
	next := func() int32 {
		x := int32(binary.LittleEndian.Uint32(p))
		p = p[4:]
		return x
	}
	for i := range s.runs {
		s.runs[i] = model.Run{Slot: int(next()), Start: int(next()), N: int(next()), KV: int(next())}
	}
	for _, list := range [2][]int32{s.tokens, s.outputs} {
		for i := range list {
			list[i] = next()
		}
	}
}

// check refuses what would reach outside the rank's memory: a step comes from
// another machine.
func (s *step) check(slots, ctx, vocab, outputs int) error {
	n := 0
	for _, r := range s.runs {
		if r.Slot < 0 || r.Slot >= slots || r.N < 1 || r.N > maxBatch || r.Start < 0 || r.Start > ctx-r.N ||
			r.KV < r.Start+r.N || r.KV > ctx {
			return fmt.Errorf("step: run %+v is out of bounds", r)
		}
		n += r.N
	}
	if n != len(s.tokens) {
		return fmt.Errorf("step: runs of %d tokens, but %d tokens", n, len(s.tokens))
	}
	for _, t := range s.tokens {
		if t < 0 || int(t) >= vocab {
			return fmt.Errorf("step: token %d is not in a vocabulary of %d", t, vocab)
		}
	}
	if len(s.outputs) > outputs {
		return fmt.Errorf("step: %d outputs, at most %d", len(s.outputs), outputs)
	}
	last := int32(-1)
	for _, o := range s.outputs {
		if o <= last || int(o) >= n {
			return fmt.Errorf("step: output %d is out of order or bounds", o)
		}
		last = o
	}
	return nil
}
