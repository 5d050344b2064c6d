package linkbench

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"daisy/rdma"
	"daisy/rdma/mem"
	"daisy/rdma/tcp/tcptest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// everybody runs f on every rank of a group and returns each rank's value.
func everybody[T any](t *testing.T, ts []rdma.Transport, f func(*rdma.Group) (T, error)) []T {
	t.Helper()
	out, errs := make([]T, len(ts)), make([]error, len(ts))
	var wg sync.WaitGroup
	for r := range ts {
		g := rdma.NewGroup(ts[r], 1)
		t.Cleanup(func() { g.Close() })
		wg.Go(func() { out[r], errs[r] = f(g) })
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
	return out
}

func TestRun(t *testing.T) {
	overTCP, err := tcptest.Loopback(2, true)
	require.NoError(t, err)
	for _, ts := range [][]rdma.Transport{mem.New(3), overTCP} {
		t.Run(ts[0].Kind(), func(t *testing.T) {
			o := Options{Sizes: []int{4, 100 << 10}, Budget: time.Millisecond}
			seen := 0
			results := everybody(t, ts, func(g *rdma.Group) (*Result, error) {
				o := o
				if g.Rank() == 0 {
					o.Progress = func(Row) { seen++ }
				}
				return Run(t.Context(), g, o)
			})
			res := results[0]
			for _, other := range results[1:] {
				require.Equal(t, res, other, "ranks differ")
			}
			require.Equal(t, ts[0].Kind(), res.Transport)
			n := len(ts)
			require.Len(t, res.Rows, n*(n-1)/2*2+1+4*2)
			require.Equal(t, len(res.Rows), seen)
			for _, row := range res.Rows {
				require.Equal(t, row.Op == SendRecv, row.Pair != nil)
				require.GreaterOrEqual(t, row.Iterations, minIterations)
				require.Positive(t, row.Min)
				require.LessOrEqual(t, row.Min, row.P50)
				require.LessOrEqual(t, row.P50, row.P99)
				require.LessOrEqual(t, row.P99, row.Max)
				require.Equal(t, row.Op == Barrier, row.Bandwidth == 0)
			}
		})
	}
}

func TestPair(t *testing.T) {
	type link struct {
		latency   time.Duration
		bandwidth float64
	}
	links := everybody(t, mem.New(3), func(g *rdma.Group) (l link, err error) {
		if g.Rank() != 1 {
			l.latency, l.bandwidth, err = Pair(t.Context(), g, 2-g.Rank())
		}
		return l, err
	})
	require.Positive(t, links[0].latency)
	require.Positive(t, links[0].bandwidth)
	require.Equal(t, links[0].latency, links[2].latency)
	require.InDelta(t, links[0].bandwidth, links[2].bandwidth, 1)

	_, _, err := Pair(t.Context(), rdma.Solo(), 1)
	require.ErrorContains(t, err, "no peer")
}

// TestPairOutOfPlace: what is no probe ends the group, with the reason.
func TestPairOutOfPlace(t *testing.T) {
	ts := mem.New(2)
	a, b := rdma.NewGroup(ts[0], 1), rdma.NewGroup(ts[1], 1)
	defer a.Close()
	defer b.Close()
	p := probe{ctx: t.Context(), g: a, peer: 1}
	require.NoError(t, p.send(1<<40))
	_, _, err := Pair(t.Context(), b, 0)
	require.ErrorContains(t, err, "no part of a probe")
	require.ErrorIs(t, a.Err(), rdma.ErrAborted)
}

func TestCancel(t *testing.T) {
	ts := mem.New(2)
	a, b := rdma.NewGroup(ts[0], 1), rdma.NewGroup(ts[1], 1)
	defer a.Close()
	defer b.Close()
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan error, 1)
	var once sync.Once
	go func() {
		_, err := Run(ctx, a, Options{Budget: time.Minute, Progress: func(Row) { once.Do(cancel) }})
		first <- err
	}()
	_, err := Run(context.Background(), b, Options{Budget: time.Minute, Sizes: []int{4, 8}, Ops: []Op{SendRecv}})
	require.Error(t, err)
	require.Error(t, <-first)
}

func TestOptions(t *testing.T) {
	for _, c := range []struct {
		o    Options
		says string
	}{
		{Options{Sizes: []int{3}}, "multiple of 4"},
		{Options{Sizes: []int{2 * MaxBytes}}, "multiple of 4"},
		{Options{Sizes: make([]int, MaxSizes+1)}, "more than"},
		{Options{Sizes: []int{}}, "no size"},
		{Options{Ops: []Op{"gossip"}}, `no operation "gossip"`},
		{Options{Budget: time.Hour}, "budget"},
	} {
		_, err := c.o.Complete()
		require.ErrorContains(t, err, c.says)
	}
	o, err := Options{}.Complete()
	require.NoError(t, err)
	require.Equal(t, Ops(), o.Ops)
	require.Equal(t, DefaultSizes(), o.Sizes)
	_, err = Run(t.Context(), rdma.Solo(), Options{})
	require.ErrorContains(t, err, "one rank has no links")
}

func TestStatistics(t *testing.T) {
	var s []time.Duration
	for i := range 200 {
		s = append(s, time.Duration(200-i))
	}
	var row Row
	row.summarize(s)
	require.Equal(t, Row{Iterations: 200, P50: 100, P99: 198, Mean: 100, Min: 1, Max: 200}, row)
	require.Equal(t, time.Duration(7), percentile([]time.Duration{7}, 99))

	// Four ranks, 1 MB, 1 ms.
	for op, want := range map[Op]float64{AllReduce: 1.5e9, ReduceScatter: 3e9, AllGather: 3e9, Broadcast: 1e9, Barrier: 0} {
		require.InDelta(t, want, busBandwidth(op, 4, 1e6, time.Millisecond), 1, op)
	}
}
