package transporttest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"daisy/rdma"

	"github.com/stretchr/testify/require"
)

// operations are all that a group can do, each with so many bytes per rank.
var operations = []struct {
	name string
	run  func(ctx context.Context, g *rdma.Group, nBytes int) error
}{
	{"all-reduce", func(ctx context.Context, g *rdma.Group, n int) error {
		return g.AllReduce(ctx, make([]float32, n/4))
	}},
	{"all-reduce in bf16", func(ctx context.Context, g *rdma.Group, n int) error {
		return g.AllReduceAs(ctx, rdma.BF16, make([]float32, n/2))
	}},
	{"reduce-scatter in f16", func(ctx context.Context, g *rdma.Group, n int) error {
		from, to := rdma.Share(n/2, g.WorldSize(), g.Rank())
		return g.ReduceScatter(ctx, rdma.F16, make([]float32, to-from), make([]float32, n/2))
	}},
	{"all-gather", func(ctx context.Context, g *rdma.Group, n int) error {
		return g.AllGather(ctx, make([]byte, n*g.WorldSize()), make([]byte, n))
	}},
	{"broadcast", func(ctx context.Context, g *rdma.Group, n int) error {
		return g.Broadcast(ctx, g.WorldSize()-1, make([]byte, n))
	}},
	{"barrier", func(ctx context.Context, g *rdma.Group, _ int) error { return g.Barrier(ctx) }},
}

// testDeadlines: the last rank never comes, so each of the others gives up, by
// its own deadline or by that of another, and all say so. (The last rank is the
// root of the broadcast.)
func testDeadlines(t *testing.T, h Harness) {
	for _, s := range []shape{mesh, chain} {
		for _, op := range operations {
			for _, n := range []int{64, h.bytes(1 << 20)} {
				gs, _ := h.shaped(t, 3, s)
				var errs []error
				// On a busy machine a deadline can pass before anybody has
				// started, which leaves the group as it was.
				for d := 10 * time.Millisecond; gs[0].Err() == nil && gs[1].Err() == nil; d *= 2 {
					ctx, cancel := context.WithTimeout(context.Background(), d)
					errs = all(t, gs[:2], func(_ int, g *rdma.Group) error { return op.run(ctx, g, n) })
					cancel()
				}
				expired := false
				for r, err := range errs {
					expired = expired || errors.Is(err, context.DeadlineExceeded)
					require.ErrorContains(t, err, op.name+": ", "rank %d", r)
					require.ErrorContains(t, err, context.DeadlineExceeded.Error(), "rank %d", r)
				}
				require.True(t, expired, op.name)
				err := ended(t, gs[2])
				require.ErrorIs(t, err, rdma.ErrAborted)
				require.ErrorContains(t, err, "ended the group: "+op.name+": context deadline exceeded")
			}
		}
	}
}

// testKilledInCollective kills a rank in the middle of many of the same
// operation, short and long.
func testKilledInCollective(t *testing.T, h Harness) {
	for _, s := range []shape{mesh, ring, chain} {
		for _, op := range operations {
			for _, n := range []int{64, h.bytes(256 << 10)} {
				t.Run(fmt.Sprintf("%v/%s/bytes=%d", s, op.name, n), func(t *testing.T) {
					testKilled(t, h, s, n, op.run)
				})
			}
		}
	}
}

func testKilled(t *testing.T, h Harness, s shape, n int, run func(context.Context, *rdma.Group, int) error) {
	ts := h.open(t, 4)
	shaped := make([]rdma.Transport, len(ts))
	for r := range ts {
		shaped[r] = ts[r]
		if s != mesh {
			shaped[r] = wired{ts[r], s}
		}
	}
	gs := h.wrap(t, shaped)
	running := make(chan struct{}, len(gs))
	waits := make([]func() error, len(gs))
	for r, g := range gs {
		waits[r] = start(t, func() error {
			for i := 0; ; i++ {
				if err := run(t.Context(), g, n); err != nil {
					return err
				}
				if i == 4 {
					running <- struct{}{}
				}
			}
		})
	}
	for range gs {
		<-running
	}
	h.Kill(ts[2])
	for r, wait := range waits {
		if err := wait(); r != 2 {
			requireLost(t, err, 2)
		}
	}
}

// testLateRank: the others have long started when one comes.
func testLateRank(t *testing.T, h Harness) {
	gs := h.groups(t, 4)
	for round, op := range operations {
		for _, n := range []int{64, h.bytes(1 << 20)} {
			late := (round + n) % len(gs)
			started := make(chan struct{}, len(gs))
			succeed(t, gs, func(rank int, g *rdma.Group) error {
				if rank == late {
					for range len(gs) - 1 {
						<-started
					}
				} else {
					started <- struct{}{}
				}
				return op.run(t.Context(), g, n)
			})
		}
	}
}
