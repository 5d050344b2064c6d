package sample

import "slices"

// ring holds the last tokens accepted, as many as the window has room for.
type ring struct {
	buf  []int32
	next int // where the next one goes
	n    int // how many there are
}

func newRing(size int) ring { return ring{buf: make([]int32, size)} }

func (r *ring) push(id int32) {
	if len(r.buf) == 0 {
		return
	}
	r.buf[r.next] = id
	r.next = (r.next + 1) % len(r.buf)
	r.n = min(r.n+1, len(r.buf))
}

// appendTo appends the tokens, oldest first.
func (r *ring) appendTo(dst []int32) []int32 {
	if r.n < len(r.buf) {
		return append(dst, r.buf[:r.n]...)
	}
	dst = append(dst, r.buf[r.next:]...)
	return append(dst, r.buf[:r.next]...)
}

func (r ring) clone() ring {
	r.buf = slices.Clone(r.buf)
	return r
}
