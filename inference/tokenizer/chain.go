package tokenizer

import (
	"iter"
	"math"
)

// chain is a run of text cut into parts that merge with their neighbours, the cheapest pair first and the leftmost of
// equals, in n log n: a linked list with a heap of candidate pairs. Parts are byte spans of the text.
type chain struct {
	parts []link
	heap  []pair
	end   int32
}

// link is one part; a dead one was merged into the part before it.
type link struct {
	from, to   int32
	prev, next int32
	id         int32 // the token it is, or none
	dead       bool
}

// pair is a candidate: a part and the one after it. order is the cost and, among equals, the place; id is the token
// that joining them makes; to is where the second ended when it was found, by which a stale candidate is told.
type pair struct {
	order uint64
	id    int32
	to    int32
}

func newPair(cost float32, left, id, to int32) pair {
	bits := math.Float32bits(cost + 0) // no negative zero
	if bits>>31 == 1 {
		bits = ^bits
	} else {
		bits |= 1 << 31
	}
	return pair{uint64(bits)<<32 | uint64(uint32(left)), id, to}
}

// joiner tells whether two neighbours join, into which token, and how dear that is.
type joiner interface {
	join(l, r *link) (id int32, cost float32, ok bool)
}

// reset empties the chain and keeps its memory.
func (c *chain) reset() {
	c.parts, c.heap, c.end = c.parts[:0], c.heap[:0], 0
}

// add appends a part of n bytes that is the token id.
func (c *chain) add(n int, id int32) {
	i := int32(len(c.parts))
	if i > 0 {
		c.parts[i-1].next = i
	}
	c.parts = append(c.parts, link{from: c.end, to: c.end + int32(n), prev: i - 1, next: -1, id: id})
	c.end += int32(n)
}

// merge joins parts until no neighbours can be joined.
func (c *chain) merge(j joiner) {
	consider := func(left int32) {
		if left < 0 || c.parts[left].next < 0 {
			return
		}
		l := &c.parts[left]
		r := &c.parts[l.next]
		if id, cost, ok := j.join(l, r); ok {
			c.push(newPair(cost, left, id, r.to))
		}
	}
	for i := range int32(len(c.parts)) {
		consider(i)
	}
	for len(c.heap) > 0 {
		p := c.pop()
		left := int32(uint32(p.order))
		l := &c.parts[left]
		if l.dead || l.next < 0 || c.parts[l.next].to != p.to {
			continue
		}
		r := &c.parts[l.next]
		l.to, l.next, l.id = r.to, r.next, p.id
		r.dead = true
		if r.next >= 0 {
			c.parts[r.next].prev = left
		}
		consider(l.prev)
		consider(left)
	}
}

// all yields the parts that are left.
func (c *chain) all() iter.Seq[*link] {
	return func(yield func(*link) bool) {
		for i := int32(0); i >= 0 && i < int32(len(c.parts)); i = c.parts[i].next {
			if !yield(&c.parts[i]) {
				return
			}
		}
	}
}

// The heap has four children to a node: half as deep as a binary one, and what is compared lies together.

func (c *chain) push(p pair) {
	c.heap = append(c.heap, p)
	i := len(c.heap) - 1
	for i > 0 {
		parent := (i - 1) / 4
		if c.heap[parent].order <= p.order {
			break
		}
		c.heap[i] = c.heap[parent]
		i = parent
	}
	c.heap[i] = p
}

func (c *chain) pop() pair {
	h := c.heap
	top, last := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	c.heap = h
	if len(h) == 0 {
		return top
	}
	i := 0
	for {
		child := 4*i + 1
		if child >= len(h) {
			break
		}
		least := child
		for k := child + 1; k < min(child+4, len(h)); k++ {
			if h[k].order < h[least].order {
				least = k
			}
		}
		if h[least].order >= last.order {
			break
		}
		h[i] = h[least]
		i = least
	}
	h[i] = last
	return top
}
