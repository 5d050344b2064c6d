package tokenizer

import "iter"

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

// pair is a candidate: parts left and right, the cost of joining them, the token that makes, and the span's end when it
// was found, by which a stale candidate is told.
type pair struct {
	cost        float32
	left, right int32
	id          int32
	to          int32
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
	consider := func(left, right int32) {
		if left < 0 || right < 0 {
			return
		}
		l, r := &c.parts[left], &c.parts[right]
		if id, cost, ok := j.join(l, r); ok {
			c.push(pair{cost, left, right, id, r.to})
		}
	}
	for i := int32(1); i < int32(len(c.parts)); i++ {
		consider(i-1, i)
	}
	for len(c.heap) > 0 {
		p := c.pop()
		l, r := &c.parts[p.left], &c.parts[p.right]
		if l.dead || r.dead || l.next != p.right || r.to != p.to {
			continue
		}
		l.to, l.next, l.id = r.to, r.next, p.id
		r.dead = true
		if r.next >= 0 {
			c.parts[r.next].prev = p.left
		}
		consider(l.prev, p.left)
		consider(p.left, l.next)
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

func (p pair) before(q pair) bool {
	return p.cost < q.cost || p.cost == q.cost && p.left < q.left
}

func (c *chain) push(p pair) {
	c.heap = append(c.heap, p)
	i := len(c.heap) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !p.before(c.heap[parent]) {
			break
		}
		c.heap[i] = c.heap[parent]
		i = parent
	}
	c.heap[i] = p
}

func (c *chain) pop() pair {
	top := c.heap[0]
	last := c.heap[len(c.heap)-1]
	c.heap = c.heap[:len(c.heap)-1]
	n := len(c.heap)
	if n == 0 {
		return top
	}
	i := 0
	for {
		child := 2*i + 1
		if child >= n {
			break
		}
		if child+1 < n && c.heap[child+1].before(c.heap[child]) {
			child++
		}
		if !c.heap[child].before(last) {
			break
		}
		c.heap[i] = c.heap[child]
		i = child
	}
	c.heap[i] = last
	return top
}
