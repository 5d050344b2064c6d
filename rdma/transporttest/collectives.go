package transporttest

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"testing"

	"daisy/rdma"
)

// runCollectives crosses every collective with world sizes and lengths and
// compares with serial code. Sums are compared bit by bit.
func runCollectives(t *testing.T, h Harness) {
	for world := 1; world <= 8; world++ {
		t.Run(fmt.Sprintf("ranks=%d", world), func(t *testing.T) {
			gs := h.groups(t, world)
			for _, n := range lengths(world) {
				testAllReduce(t, gs, n)
				testAllGather(t, gs, n)
				testAllGatherV(t, gs, n)
				testBroadcast(t, gs, n)
			}
			testBarrier(t, gs)
		})
	}
}

// lengths counts float32 values: none, one, fewer than ranks, primes, around
// the thresholds of the algorithms and of the transports, large.
func lengths(world int) []int {
	d := rdma.DirectLimit / 4
	ls := []int{0, 1, 2, 7, 127, 1021, d - 1, d, d + 1, 2*d - 1, 2 * d, 2*d + 1, 16381, 300007}
	if world <= 3 {
		ls = append(ls, 2<<20+17)
	}
	return ls
}

// values are such that another order of summation gives other bits: any
// mantissas and signs, exponents over a range of 2^16.
func values(rank, n int) []float32 {
	x := make([]float32, n)
	s := uint64(rank)<<32 + uint64(n) + 1
	for i := range x {
		s = s*6364136223846793005 + 1442695040888963407
		b := uint32(s >> 32)
		x[i] = math.Float32frombits(b&0x807fffff | (119+b>>23&15)<<23)
	}
	return x
}

func testAllReduce(t *testing.T, gs []*rdma.Group, n int) {
	t.Helper()
	want := values(0, n)
	for r := 1; r < len(gs); r++ {
		for i, v := range values(r, n) {
			want[i] += v
		}
	}
	succeed(t, gs, func(rank int, g *rdma.Group) error {
		x := values(rank, n)
		if err := g.AllReduce(t.Context(), x); err != nil {
			return err
		}
		if slices.Equal(x, want) {
			return nil // there are no NaNs and no zeros to mistake
		}
		for i := range x {
			if x[i] != want[i] {
				return fmt.Errorf("all-reduce of %d: value %d is %g, serial sum %g", n, i, x[i], want[i])
			}
		}
		return nil
	})
}

func testAllGather(t *testing.T, gs []*rdma.Group, n int) {
	t.Helper()
	succeed(t, gs, func(rank int, g *rdma.Group) error {
		in, out := make([]byte, n), make([]byte, n*len(gs))
		fill(in, rank)
		if err := g.AllGather(t.Context(), out, in); err != nil {
			return err
		}
		for r := range gs {
			if err := check(out[r*n:][:n], r); err != nil {
				return fmt.Errorf("all-gather of %d: part of rank %d: %w", n, r, err)
			}
		}
		return nil
	})
}

func testAllGatherV(t *testing.T, gs []*rdma.Group, n int) {
	t.Helper()
	succeed(t, gs, func(rank int, g *rdma.Group) error {
		parts := make([][]byte, len(gs))
		for r := range parts {
			parts[r] = make([]byte, n*r/2) // rank 0 gives nothing
		}
		fill(parts[rank], rank)
		if err := g.AllGatherV(t.Context(), parts); err != nil {
			return err
		}
		for r := range parts {
			if err := check(parts[r], r); err != nil {
				return fmt.Errorf("uneven all-gather of %d: part of rank %d: %w", n, r, err)
			}
		}
		return nil
	})
}

func testBroadcast(t *testing.T, gs []*rdma.Group, n int) {
	t.Helper()
	want := make([]byte, n)
	fill(want, n)
	succeed(t, gs, func(rank int, g *rdma.Group) error {
		for root := range gs {
			p := make([]byte, n)
			if rank == root {
				copy(p, want)
			}
			if err := g.Broadcast(t.Context(), root, p); err != nil {
				return err
			}
			if !bytes.Equal(p, want) {
				return fmt.Errorf("broadcast of %d from rank %d differs", n, root)
			}
		}
		return nil
	})
}

// testBarrier checks that nobody leaves a barrier before everybody has come.
func testBarrier(t *testing.T, gs []*rdma.Group) {
	t.Helper()
	for late := range gs {
		come := make(chan struct{})
		wait := start(t, func() error {
			succeed(t, gs, func(rank int, g *rdma.Group) error {
				if rank == late {
					close(come)
				}
				if err := g.Barrier(t.Context()); err != nil {
					return err
				}
				select {
				case <-come:
					return nil
				default:
					return fmt.Errorf("rank %d left before rank %d came", rank, late)
				}
			})
			return nil
		})
		if err := wait(); err != nil {
			t.Fatal(err)
		}
	}
}
