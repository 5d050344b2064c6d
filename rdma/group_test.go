package rdma_test

import (
	"context"
	"testing"

	"daisy/rdma"
	"daisy/rdma/mem"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSolo(t *testing.T) {
	g := rdma.Solo()
	ctx := t.Context()
	x := []float32{1, 2}
	require.NoError(t, g.AllReduce(ctx, x))
	require.Equal(t, []float32{1, 2}, x)
	out := make([]byte, 2)
	require.NoError(t, g.AllGather(ctx, out, []byte{3, 4}))
	require.Equal(t, []byte{3, 4}, out)
	require.NoError(t, g.AllGatherV(ctx, [][]byte{out}))
	require.NoError(t, g.Broadcast(ctx, 0, out))
	require.NoError(t, g.Barrier(ctx))
	require.Error(t, g.Send(ctx, 1, nil))
	require.Equal(t, "solo", g.Kind())
	require.Equal(t, []int{0, 1}, []int{g.Rank(), g.WorldSize()})
	require.NoError(t, g.Err())

	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	require.ErrorIs(t, g.Barrier(cancelled), context.Canceled)
	require.NoError(t, g.Err())

	require.NoError(t, g.Close())
	require.NoError(t, g.Close())
	<-g.Done()
	require.ErrorIs(t, g.AllReduce(ctx, x), rdma.ErrClosed)
	require.ErrorIs(t, g.Err(), rdma.ErrClosed)
}

// TestTurns: a collective that waits for its turn behind another can be
// cancelled without harm to either.
func TestTurns(t *testing.T) {
	ts := mem.New(2)
	a, b := rdma.NewGroup(ts[0], 1), rdma.NewGroup(ts[1], 1)
	defer a.Close()
	defer b.Close()
	first := make(chan error, 1)
	go func() { first <- a.AllReduce(context.Background(), []float32{1}) }()
	// Its message shows that the first collective has the turn.
	p := make([]byte, 4)
	require.NoError(t, ts[1].Recv(0, rdma.Tag{Op: rdma.OpAllReduce, Seq: 1, Bytes: 4}, p))

	ctx, cancel := context.WithCancel(t.Context())
	second := make(chan error, 1)
	go func() { second <- a.Barrier(ctx) }()
	cancel()
	require.ErrorIs(t, <-second, context.Canceled)
	require.NoError(t, a.Err())

	require.NoError(t, ts[1].Send(0, rdma.Tag{Op: rdma.OpAllReduce, Seq: 1, Bytes: 4}, p))
	require.NoError(t, <-first)
}

// TestCloseWhileWaiting: Close does not wait for a collective that waits for
// others.
func TestCloseWhileWaiting(t *testing.T) {
	ts := mem.New(2)
	a, b := rdma.NewGroup(ts[0], 1), rdma.NewGroup(ts[1], 1)
	defer b.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	waiting := make(chan error, 1)
	go func() { waiting <- a.AllReduce(ctx, []float32{1}) }()
	require.NoError(t, ts[1].Recv(0, rdma.Tag{Op: rdma.OpAllReduce, Seq: 1, Bytes: 4}, make([]byte, 4)))
	require.NoError(t, a.Close())
	require.ErrorIs(t, <-waiting, rdma.ErrClosed)
	require.ErrorIs(t, b.Barrier(ctx), rdma.ErrPeerLost)
}

func TestLinks(t *testing.T) {
	ts := mem.New(3)
	g := rdma.NewGroup(ts[1], 1)
	defer g.Close()
	require.Equal(t, []rdma.Link{{Peer: 0, Kind: "mem"}, {Peer: 2, Kind: "mem"}}, g.Links())

	l := rdma.NewGroup(measured{ts[2]}, 1)
	defer l.Close()
	require.Equal(t, []rdma.Link{{Peer: 0, Kind: "verbs", Device: "rdma_en2", Latency: 7}}, l.Links())

	s := rdma.Solo()
	defer s.Close()
	require.Empty(t, s.Links())
}

type measured struct{ rdma.Transport }

func (measured) Links() []rdma.Link {
	return []rdma.Link{{Peer: 0, Kind: "verbs", Device: "rdma_en2", Latency: 7}}
}
