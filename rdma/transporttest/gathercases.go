package transporttest

import (
	"bytes"
	"fmt"
	"math"
	"testing"

	"daisy/rdma"
)

// value has any mantissa and sign and an exponent from -8 to 7.
func value(b uint32) float32 { return math.Float32frombits(b&0x807fffff | (119+b>>23&15)<<23) }

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
			if n > 100<<10 && root != 0 && root != len(gs)-1 {
				continue
			}
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
