package transporttest

import (
	"context"
	"errors"
	"testing"

	"daisy/rdma"

	"github.com/stretchr/testify/require"
)

var groupCases = []testCase{
	{"cancel in progress ends the group", 3, testCancelInProgress},
	{"cancel before the start does not", 2, testCancelBefore},
	{"cancel between operations does not", 2, testCancelBetween},
	{"deadline in progress", 2, testDeadline},
	{"deadline of every operation", 3, testDeadlines},
	{"different operations", 5, testDifferentOps},
	{"different lengths", 3, testDifferentLengths},
	{"wrong arguments", 2, testArguments},
	{"peer killed in a collective", 4, testKilledInCollective},
	{"late rank", 4, testLateRank},
	{"close after the last collective", 4, testCloseAfterCollective},
	{"two groups at once", 3, testTwoGroups},
	{"send and receive", 3, testSendRecv},
	{"no allocation", 3, testNoAllocation},
}

func testCancelInProgress(t *testing.T, h Harness) {
	gs, ts := h.groupsAndTransports(t, 3)
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("the user pressed stop")
	other := start(t, func() error { return gs[0].Barrier(context.Background()) })
	wait := start(t, func() error { return gs[1].Barrier(ctx) })
	// Rank 1's message shows that it is in the barrier. Rank 2 never joins it.
	require.NoError(t, ts[2].Recv(1, rdma.Tag{Op: rdma.OpBarrier, Seq: 1}, nil))
	cancel(reason)
	err := wait()
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, reason)
	for _, err := range []error{other(), ended(t, gs[2])} {
		require.ErrorIs(t, err, rdma.ErrAborted)
		require.NotErrorIs(t, err, context.Canceled)
		require.ErrorContains(t, err, "rank 1 ended the group: barrier: context canceled: the user pressed stop")
	}
}

func testCancelBefore(t *testing.T, h Harness) {
	gs := h.groups(t, 2)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, gs[0].Barrier(ctx), context.Canceled)
	require.ErrorIs(t, gs[0].Send(ctx, 1, nil), context.Canceled)
	require.NoError(t, gs[0].Err())
	succeed(t, gs, func(_ int, g *rdma.Group) error { return g.Barrier(t.Context()) })
}

func testCancelBetween(t *testing.T, h Harness) {
	gs := h.groups(t, 2)
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		succeed(t, gs, func(_ int, g *rdma.Group) error { return g.AllReduce(ctx, []float32{1}) })
		cancel()
		succeed(t, gs, func(_ int, g *rdma.Group) error { return g.AllReduce(context.Background(), []float32{1}) })
	}
}

// passing is a context whose deadline passes when the test says so.
type passing struct {
	context.Context
	passed chan struct{}
}

func (c passing) Done() <-chan struct{} { return c.passed }

func (c passing) Err() error {
	select {
	case <-c.passed:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

func testDeadline(t *testing.T, h Harness) {
	gs, ts := h.groupsAndTransports(t, 2)
	ctx := passing{t.Context(), make(chan struct{})}
	wait := start(t, func() error { return gs[0].AllGather(ctx, make([]byte, 2), make([]byte, 1)) })
	require.NoError(t, ts[1].Recv(0, rdma.Tag{Op: rdma.OpAllGather, Seq: 1, Bytes: 2}, make([]byte, 1)))
	close(ctx.passed)
	require.ErrorIs(t, wait(), context.DeadlineExceeded)
	require.ErrorIs(t, ended(t, gs[1]), rdma.ErrAborted)
	require.ErrorContains(t, gs[1].Err(), "rank 0 ended the group: all-gather: context deadline exceeded")
	require.ErrorIs(t, gs[1].Barrier(t.Context()), rdma.ErrAborted)
	require.ErrorIs(t, gs[0].Barrier(t.Context()), context.DeadlineExceeded)
}

func testDifferentOps(t *testing.T, h Harness) {
	for _, world := range []int{2, 3, 5} {
		gs := h.groups(t, world)
		for r, err := range all(t, gs, func(rank int, g *rdma.Group) error {
			if rank == 1 {
				return g.AllGather(t.Context(), make([]byte, 4*world), make([]byte, 4))
			}
			return g.AllReduce(t.Context(), make([]float32, world))
		}) {
			require.ErrorIs(t, err, rdma.ErrMismatch, "rank %d", r)
			require.ErrorContains(t, err, "all-gather #1")
			require.ErrorContains(t, err, "all-reduce #1")
		}
	}
}

func testDifferentLengths(t *testing.T, h Harness) {
	for _, n := range []int{0, 10, rdma.WholeLimit / 4, h.bytes(4<<20)/4 - 1} {
		gs := h.groups(t, 3)
		for r, err := range all(t, gs, func(rank int, g *rdma.Group) error {
			return g.AllReduce(t.Context(), make([]float32, n+rank/2))
		}) {
			require.ErrorIs(t, err, rdma.ErrMismatch, "rank %d, %d values", r, n)
		}
	}
}

func testArguments(t *testing.T, h Harness) {
	gs := h.groups(t, 2)
	ctx := t.Context()
	require.Error(t, gs[0].Broadcast(ctx, 2, nil))
	require.Error(t, gs[0].Broadcast(ctx, -1, nil))
	require.Error(t, gs[0].Send(ctx, 0, nil))
	require.Error(t, gs[0].Send(ctx, 2, nil))
	require.Error(t, gs[0].Recv(ctx, -1, nil))
	require.Error(t, gs[0].AllGather(ctx, make([]byte, 3), make([]byte, 2)))
	require.Error(t, gs[0].AllGatherV(ctx, make([][]byte, 3)))
	require.NoError(t, gs[0].Err())
	require.Equal(t, uint64(7), gs[0].Epoch())
	require.Equal(t, h.Kind, gs[0].Kind())
	succeed(t, gs, func(_ int, g *rdma.Group) error { return g.Barrier(ctx) })
}

// testCloseAfterCollective leaves as soon as each rank is done itself: nobody
// may take that for a failure of the collective.
func testCloseAfterCollective(t *testing.T, h Harness) {
	for range 20 {
		gs := h.groups(t, 4)
		succeed(t, gs, func(rank int, g *rdma.Group) error {
			x := make([]float32, 1000)
			if err := g.AllReduce(t.Context(), x); err != nil {
				return err
			}
			if err := g.Barrier(t.Context()); err != nil {
				return err
			}
			return g.Close()
		})
	}
}

// testTwoGroups runs different collectives of two groups at once, short and
// long ones.
func testTwoGroups(t *testing.T, h Harness) {
	gs := append(h.groups(t, 3), h.groups(t, 3)...)
	n := h.bytes(300<<10) / 4
	succeed(t, gs, func(i int, g *rdma.Group) error {
		group := i / 3
		x, part := make([]float32, n), make([]float32, n/3)
		for round := range 50 {
			length := 2
			if (round+group)%5 == 0 {
				length = n / 3 * 3
			}
			x := x[:length]
			for j := range x {
				x[j] = float32(group + 1)
			}
			x[0] = float32(round)
			if group == 1 && length > 2 {
				if err := g.ReduceScatter(t.Context(), rdma.BF16, part, x); err != nil {
					return err
				}
				if part[length/3-1] != 6 {
					return errors.New("groups are mixed up")
				}
				continue
			}
			if err := g.AllReduce(t.Context(), x); err != nil {
				return err
			}
			if x[0] != 3*float32(round) || x[length-1] != 3*float32(group+1) {
				return errors.New("groups are mixed up")
			}
		}
		return nil
	})
}

func testSendRecv(t *testing.T, h Harness) {
	gs := h.groups(t, 3)
	succeed(t, gs, func(rank int, g *rdma.Group) error {
		// A pipeline with collectives between.
		for i := range 30 {
			p := make([]byte, i*4001)
			fill(p, i)
			if rank > 0 {
				in := make([]byte, len(p))
				if err := g.Recv(t.Context(), rank-1, in); err != nil {
					return err
				}
				if err := check(in, i); err != nil {
					return err
				}
			}
			if rank < 2 {
				if err := g.Send(t.Context(), rank+1, p); err != nil {
					return err
				}
			}
			if i%7 == 0 {
				if err := g.Barrier(t.Context()); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// testNoAllocation counts the allocations of the whole process while all ranks
// run collectives with a cancellable context.
func testNoAllocation(t *testing.T, h Harness) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	// The last are three ranks in a chain.
	for i, n := range []int{64, 4096, h.bytes(1<<20) / 4, 4096, h.bytes(1<<20) / 4} {
		gs, _ := h.shaped(t, 3, shape(i/3*2))
		ctx, cancel := context.WithCancel(context.Background())
		const rounds = 50
		turn := make([]chan bool, len(gs))
		done := make(chan error, len(gs))
		for r, g := range gs {
			turn[r] = make(chan bool)
			go func() {
				x := make([]float32, n)
				p := make([]byte, n)
				all := make([]byte, 3*n)
				from, to := rdma.Share(n, 3, r)
				part := make([]float32, to-from)
				for range turn[r] {
					for range rounds {
						err := errors.Join(g.AllReduce(ctx, x), g.AllReduceAs(ctx, rdma.F16, x),
							g.ReduceScatter(ctx, rdma.BF16, part, x), g.Broadcast(ctx, 1, p),
							g.AllGather(ctx, all, p), g.Barrier(ctx))
						done <- err
					}
				}
			}()
		}
		round := func() {
			for _, c := range turn {
				c <- true
			}
			for range rounds * len(gs) {
				if err := <-done; err != nil {
					t.Error(err)
				}
			}
		}
		got := testing.AllocsPerRun(3, round) / (6 * rounds * float64(len(gs)))
		for _, c := range turn {
			close(c)
		}
		cancel()
		// Not exactly zero: the runtime allocates now and then itself.
		require.Less(t, got, h.Allocations+0.02, "allocations per collective of %d bytes", n)
	}
}
