package transporttest

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"daisy/rdma"
)

// runCollectives crosses every collective with world sizes, wirings, wire types
// and lengths and compares with serial code. Sums are compared bit by bit.
func runCollectives(t *testing.T, h Harness) {
	for _, world := range h.worlds() {
		for _, s := range []shape{mesh, ring, chain} {
			if s == chain && world < 3 || s == ring && world < 4 {
				continue // the same as a mesh
			}
			t.Run(fmt.Sprintf("ranks=%d/%v", world, s), func(t *testing.T) {
				gs, limit := h.shaped(t, world, s)
				for _, n := range h.lengths(world, s, limit) {
					testAllGather(t, gs, n)
					testAllGatherV(t, gs, n)
					testBroadcast(t, gs, n)
					testSums(t, gs, s, limit, rdma.F32, (n+3)/4)
					if n < 100<<10 || world == 3 && n < 1<<20 {
						testSums(t, gs, s, limit, rdma.F16, (n+1)/2)
						testSums(t, gs, s, limit, rdma.BF16, (n+1)/2)
					}
				}
				testBarrier(t, gs)
			})
		}
	}
}

// shaped is groups with a wiring, and the length above which they sum in parts.
func (h Harness) shaped(t *testing.T, world int, s shape) ([]*rdma.Group, int) {
	if world == 1 {
		return h.groups(t, world), rdma.WholeLimit
	}
	ts := h.open(t, world)
	for r := range ts {
		if s != mesh {
			ts[r] = wired{ts[r], s}
		}
	}
	return h.wrap(t, ts), rdma.WholeLimitOf(ts[0])
}

// lengths are in bytes: none, one, fewer values than ranks, odd, around pages,
// around the thresholds of algorithms and transports, large. Of the long ones
// every world size gets some.
func (h Harness) lengths(world int, s shape, limit int) []int {
	ls := []int{0, 1, 4, 5, 13, 28, 1021, limit, limit + 4, 4095, 4096, 4097, 32<<10 - 1, 32 << 10, 32<<10 + 1, 64<<10 - 4, 64 << 10, 64<<10 + 5}
	if s == mesh || world == 3 || s == ring && world == 4 {
		ls = append(ls, 512<<10-1, 512<<10, 512<<10+1)
	}
	if s == mesh && world == 2 || world == 3 {
		ls = append(ls, 4<<20+13)
	}
	if s == mesh && (world == 4 || world == 7) {
		ls = append(ls, rdma.ScatterLimit+13)
	}
	return slices.DeleteFunc(ls, func(n int) bool { return h.MaxBytes > 0 && n > h.MaxBytes })
}

func testSums(t *testing.T, gs []*rdma.Group, s shape, limit int, w rdma.Wire, n int) {
	t.Helper()
	raw := make([][]float32, len(gs))
	travelling := make([][]float32, len(gs))
	for r := range gs {
		raw[r] = values(r, n)
		travelling[r] = raw[r]
		if len(gs) > 1 { // one rank alone rounds nothing
			travelling[r] = roundAll(w, raw[r])
		}
	}
	inParts := s.sum(w, travelling, true)
	testReduceScatter(t, gs, w, raw, inParts)
	want := s.sum(w, travelling, false)
	if len(gs) > 2 && n*w.Bytes() > limit {
		want = roundAll(w, inParts)
	}
	testAllReduce(t, gs, w, raw, want)
}

func testAllReduce(t *testing.T, gs []*rdma.Group, w rdma.Wire, raw [][]float32, want []float32) {
	t.Helper()
	succeed(t, gs, func(rank int, g *rdma.Group) error {
		x := slices.Clone(raw[rank])
		if err := g.AllReduceAs(t.Context(), w, x); err != nil {
			return err
		}
		return same(x, want, "all-reduce in %v of %d values", w, len(x))
	})
}

func testReduceScatter(t *testing.T, gs []*rdma.Group, w rdma.Wire, raw [][]float32, sum []float32) {
	t.Helper()
	succeed(t, gs, func(rank int, g *rdma.Group) error {
		n := len(sum)
		from, to := rdma.Share(n, len(gs), rank)
		in := slices.Clone(raw[rank])
		out := in[from:to] // in place
		if n%2 == 1 {
			out = make([]float32, to-from)
		}
		if err := g.ReduceScatter(t.Context(), w, out, in); err != nil {
			return err
		}
		if err := same(out, sum[from:to], "reduce-scatter in %v of %d values", w, n); err != nil {
			return err
		}
		if slices.Equal(in[:from], raw[rank][:from]) && slices.Equal(in[to:], raw[rank][to:]) {
			return nil
		}
		return errors.New("reduce-scatter changes what is not its own")
	})
}

func same(got, want []float32, format string, args ...any) error {
	if slices.Equal(got, want) {
		return nil // there are no NaNs and no zeros to mistake
	}
	for i := range got {
		if got[i] != want[i] {
			return fmt.Errorf("%s: value %d is %g, serial sum %g", fmt.Sprintf(format, args...), i, got[i], want[i])
		}
	}
	return fmt.Errorf("%s: %d values, not %d", fmt.Sprintf(format, args...), len(got), len(want))
}

// values are such that another order of summation gives other bits: any
// mantissas and signs, exponents over a range of 2^16.
func values(rank, n int) []float32 {
	x := make([]float32, n)
	s := uint64(rank)<<32 + uint64(n) + 1
	for i := range x {
		s = s*6364136223846793005 + 1442695040888963407
		x[i] = value(uint32(s >> 32))
	}
	return x
}
