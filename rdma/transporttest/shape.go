package transporttest

import (
	"errors"

	"daisy/rdma"
)

// A shape is the wiring of a group, and the order in which it sums.
type shape uint8

const (
	mesh shape = iota
	ring
	chain
)

func (s shape) String() string { return [...]string{"mesh", "ring", "chain"}[s] }

// direct is the wiring: every rank has a cable to the next, on a ring the last
// one to the first too.
func (s shape) direct(world, a, b int) bool {
	d := max(a, b) - min(a, b)
	return s == mesh || d == 1 || s == ring && d == world-1
}

// sum is the serial model of what every rank must get, to the bit: vs holds the
// ranks' values, already rounded, and parts says that each rank sums a part.
func (s shape) sum(w rdma.Wire, vs [][]float32, parts bool) []float32 {
	world, n := len(vs), len(vs[0])
	total := make([]float32, n)
	if !parts || s == mesh || s == ring && world == 3 {
		for i := range total {
			acc := vs[0][i]
			for _, v := range vs[1:] {
				acc += v[i]
			}
			total[i] = acc
		}
		return total
	}
	for owner := range world {
		behind, ahead := owner, world-1-owner
		if s == ring {
			behind = world / 2
			ahead = world - 1 - behind
		}
		from, to := rdma.Share(n, world, owner)
		for i := from; i < to; i++ {
			// oneSide sums from the farthest towards the owner.
			oneSide := func(distance, dir int) float32 {
				at := func(d int) float32 { return vs[((owner+dir*d)%world+world)%world][i] }
				acc := at(distance)
				for d := distance - 1; d > 0; d-- {
					acc = Round(w, acc+at(d))
				}
				return acc
			}
			acc := vs[owner][i]
			if behind > 0 {
				acc = oneSide(behind, -1) + acc
			}
			if ahead > 0 {
				acc += oneSide(ahead, 1)
			}
			total[i] = acc
		}
	}
	return total
}

var errNoCable = errors.New("a collective uses two ranks that are not connected")

// wired is a transport with a shape, which refuses to be used where there is no
// cable.
type wired struct {
	rdma.Transport
	shape shape
}

func (t wired) WholeLimit() int { return rdma.WholeLimitOf(t.Transport) }

func (t wired) Direct(a, b int) bool { return t.shape.direct(t.WorldSize(), a, b) }

func (t wired) check(peers ...int) error {
	for _, p := range peers {
		if !t.Direct(t.Rank(), p) {
			t.Abort(errNoCable)
			return t.Err()
		}
	}
	return nil
}

func (t wired) Send(to int, tag rdma.Tag, p []byte) error {
	if err := t.check(to); err != nil {
		return err
	}
	return t.Transport.Send(to, tag, p)
}

func (t wired) Recv(from int, tag rdma.Tag, p []byte) error {
	if err := t.check(from); err != nil {
		return err
	}
	return t.Transport.Recv(from, tag, p)
}

func (t wired) SendRecv(tag rdma.Tag, to int, out []byte, from int, in []byte) error {
	if err := t.check(to, from); err != nil {
		return err
	}
	return t.Transport.SendRecv(tag, to, out, from, in)
}
