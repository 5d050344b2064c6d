package transporttest

import (
	"errors"
	"slices"
	"testing"

	"daisy/rdma"

	"github.com/stretchr/testify/require"
)

var transportCases = []testCase{
	{"order and sizes", 2, testOrder},
	{"both send first", 2, testBothSendFirst},
	{"ring of large messages", 5, testRing},
	{"eager messages need no receiver", 2, testEager},
	{"directions are independent", 3, testConcurrent},
	{"late receiver", 2, testLate},
	{"mismatch", 2, testMismatch},
	{"peer killed while idle", 3, testKilledIdle},
	{"peer killed while another is awaited", 3, testKilledElsewhere},
	{"peer killed in mid-message", 3, testKilledMidMessage},
	{"abort carries its cause", 4, testAbort},
	{"abort frees a blocked sender", 2, testAbortBlockedSend},
	{"close is no failure of what was sent", 3, testCloseAfterSend},
	{"close returns blocked calls", 2, testCloseBlocked},
	{"double close", 2, testDoubleClose},
}

func tagged(op rdma.Op, n int) rdma.Tag { return rdma.Tag{Op: op, Bytes: uint64(n)} }

// sizes lists message lengths: none, one, odd, around pages, around what the
// transport buffers, and large.
func (h Harness) sizes(t rdma.Transport) []int {
	e := t.EagerLimit()
	ls := []int{0, 1, 3, 1021, 4095, 4096, 4097, 32<<10 - 1, 32 << 10, 32<<10 + 1,
		e - 1, e, e + 1, 512<<10 - 1, 512 << 10, 512<<10 + 1, 4<<20 + 13, 0, 1}
	return slices.DeleteFunc(ls, func(n int) bool { return h.MaxBytes > 0 && n > h.MaxBytes })
}

func testOrder(t *testing.T, h Harness) {
	ts := h.open(t, 2)
	succeed(t, ts, func(rank int, m rdma.Transport) error {
		for i, n := range h.sizes(m) {
			p := make([]byte, n)
			tag := tagged(rdma.OpSend, n)
			tag.Seq = uint32(i)
			if rank == 0 {
				fill(p, i)
				if err := m.Send(1, tag, p); err != nil {
					return err
				}
				continue
			}
			if err := m.Recv(0, tag, p); err != nil {
				return err
			}
			if err := check(p, i); err != nil {
				return err
			}
		}
		return nil
	})
}

func testBothSendFirst(t *testing.T, h Harness) {
	ts := h.open(t, 2)
	for _, n := range append(h.sizes(ts[0]), h.bytes(8<<20)) {
		succeed(t, ts, func(rank int, m rdma.Transport) error {
			out, in := make([]byte, n), make([]byte, n)
			fill(out, rank)
			if err := m.SendRecv(tagged(rdma.OpAllGather, n), 1-rank, out, 1-rank, in); err != nil {
				return err
			}
			return check(in, 1-rank)
		})
	}
}

func testRing(t *testing.T, h Harness) {
	const world = 5
	n := h.bytes(3 << 20)
	succeed(t, h.open(t, world), func(rank int, m rdma.Transport) error {
		next, before := (rank+1)%world, (rank+world-1)%world
		out, in := make([]byte, n), make([]byte, n)
		fill(out, rank)
		if err := m.SendRecv(tagged(rdma.OpAllGather, n), next, out, before, in); err != nil {
			return err
		}
		return check(in, before)
	})
}

func testEager(t *testing.T, h Harness) {
	ts := h.open(t, 2)
	n := ts[0].EagerLimit()
	require.GreaterOrEqual(t, n, 16<<10)
	p := make([]byte, n)
	fill(p, 1)
	// Nobody receives: both sends must return all the same.
	succeed(t, ts, func(rank int, m rdma.Transport) error { return m.Send(1-rank, tagged(rdma.OpSend, n), p) })
	succeed(t, ts, func(rank int, m rdma.Transport) error {
		in := make([]byte, n)
		if err := m.Recv(1-rank, tagged(rdma.OpSend, n), in); err != nil {
			return err
		}
		return check(in, 1)
	})
}

// testConcurrent runs every direction of every pair of three ranks at once.
func testConcurrent(t *testing.T, h Harness) {
	const rounds, world = 40, 3
	ts := h.open(t, world)
	type direction struct {
		m    rdma.Transport
		peer int
		send bool
	}
	var ds []direction
	for r, m := range ts {
		for p := range world {
			if p != r {
				ds = append(ds, direction{m, p, true}, direction{m, p, false})
			}
		}
	}
	succeed(t, ds, func(_ int, d direction) error {
		for i := range rounds {
			n := i * 5003
			p := make([]byte, n)
			if d.send {
				fill(p, i)
				if err := d.m.Send(d.peer, tagged(rdma.OpSend, n), p); err != nil {
					return err
				}
			} else if err := errors.Join(d.m.Recv(d.peer, tagged(rdma.OpSend, n), p), check(p, i)); err != nil {
				return err
			}
		}
		return nil
	})
}

func testLate(t *testing.T, h Harness) {
	ts := h.open(t, 2)
	n := h.bytes(2 << 20) // more than is buffered
	p := make([]byte, n)
	fill(p, 9)
	wait := start(t, func() error { return ts[0].Send(1, tagged(rdma.OpSend, n), p) })
	in := make([]byte, n)
	// Rank 1 is busy with rank 0 in the other direction first.
	small := make([]byte, 10)
	require.NoError(t, ts[1].Send(0, tagged(rdma.OpSend, 10), small))
	require.NoError(t, ts[0].Recv(1, tagged(rdma.OpSend, 10), small))
	require.NoError(t, ts[1].Recv(0, tagged(rdma.OpSend, n), in))
	require.NoError(t, wait())
	require.NoError(t, check(in, 9))
}

func testMismatch(t *testing.T, h Harness) {
	for _, n := range []int{0, 5, h.bytes(100 << 10), h.bytes(4<<20) - 1} {
		ts := h.open(t, 2)
		wait := start(t, func() error { return ts[0].Send(1, tagged(rdma.OpBroadcast, n), make([]byte, n)) })
		err := ts[1].Recv(0, tagged(rdma.OpAllReduce, n), make([]byte, n))
		require.ErrorIs(t, err, rdma.ErrMismatch)
		require.ErrorContains(t, err, "rank 0 called broadcast")
		require.ErrorContains(t, err, "this rank all-reduce")
		require.Equal(t, err, ts[1].Err())
		require.ErrorIs(t, ended(t, ts[0]), rdma.ErrMismatch)
		wait()

		// A message longer than was asked for is refused too, whole.
		ts = h.open(t, 2)
		wait = start(t, func() error { return ts[0].Send(1, tagged(rdma.OpSend, n), make([]byte, n+1)) })
		in := make([]byte, n)
		require.ErrorIs(t, ts[1].Recv(0, tagged(rdma.OpSend, n), in), rdma.ErrMismatch)
		require.ErrorIs(t, ended(t, ts[0]), rdma.ErrMismatch)
		wait()
	}
}

func testKilledIdle(t *testing.T, h Harness) {
	ts := h.open(t, 3)
	h.Kill(ts[2])
	requireLost(t, ended(t, ts[0]), 2)
	requireLost(t, ended(t, ts[1]), 2)
	requireLost(t, ts[0].Send(1, tagged(rdma.OpSend, 1), []byte{1}), 2)
	requireLost(t, ts[1].Recv(0, tagged(rdma.OpSend, 1), []byte{1}), 2)
}

// testKilledElsewhere is the case where rank 0 waits for rank 1, which lives,
// and must learn of rank 2.
func testKilledElsewhere(t *testing.T, h Harness) {
	ts := h.open(t, 3)
	wait := start(t, func() error { return ts[0].Recv(1, tagged(rdma.OpSend, 100), make([]byte, 100)) })
	// What rank 2 sent before it died does not hide its death.
	require.NoError(t, ts[2].Send(0, tagged(rdma.OpSend, 100), make([]byte, 100)))
	h.Kill(ts[2])
	requireLost(t, wait(), 2)
	requireLost(t, ended(t, ts[1]), 2)
}

func testKilledMidMessage(t *testing.T, h Harness) {
	n := h.bytes(16 << 20)
	ts := h.open(t, 3)
	waits := []func() error{
		start(t, func() error { return ts[0].Send(2, tagged(rdma.OpSend, n), make([]byte, n)) }),
		start(t, func() error {
			return ts[1].SendRecv(tagged(rdma.OpSend, n), 2, make([]byte, n), 2, make([]byte, n))
		}),
	}
	h.Kill(ts[2])
	for _, wait := range waits {
		requireLost(t, wait(), 2)
	}
}

func testAbort(t *testing.T, h Harness) {
	ts := h.open(t, 4)
	waits := make([]func() error, 3)
	for r := range waits {
		// Nobody waits for rank 3 itself.
		waits[r] = start(t, func() error {
			return ts[r].Recv((r+1)%3, tagged(rdma.OpSend, 8), make([]byte, 8))
		})
	}
	cause := errors.New("the kernel \x1b[31mran out of luck")
	ts[3].Abort(cause)
	ts[3].Abort(errors.New("too late"))
	require.Equal(t, cause, ts[3].Err())
	for r, wait := range waits {
		err := wait()
		require.ErrorIs(t, err, rdma.ErrAborted, "rank %d", r)
		var remote *rdma.RemoteError
		require.True(t, errors.As(err, &remote))
		require.Equal(t, 3, remote.Rank)
		require.Equal(t, "the kernel ?[31mran out of luck", remote.Reason)
	}
}

func testAbortBlockedSend(t *testing.T, h Harness) {
	n := h.bytes(64 << 20)
	ts := h.open(t, 2)
	cause := errors.New("enough")
	wait := start(t, func() error { return ts[0].Send(1, tagged(rdma.OpSend, n), make([]byte, n)) })
	ts[0].Abort(cause)
	require.Equal(t, cause, wait())
	err := ended(t, ts[1])
	// In mid-message there may be no way to say why.
	if !errors.Is(err, rdma.ErrAborted) {
		requireLost(t, err, 0)
	}
}

func testCloseAfterSend(t *testing.T, h Harness) {
	ts := h.open(t, 3)
	n := ts[0].EagerLimit()
	p := make([]byte, n)
	fill(p, 4)
	require.NoError(t, ts[0].Send(1, tagged(rdma.OpSend, n), p))
	require.NoError(t, ts[0].Close())
	require.ErrorIs(t, ts[0].Err(), rdma.ErrClosed)
	// The others go on without it…
	require.NoError(t, ts[2].Send(1, tagged(rdma.OpSend, 3), p[:3]))
	require.NoError(t, ts[1].Recv(2, tagged(rdma.OpSend, 3), make([]byte, 3)))
	// …have what it sent…
	in := make([]byte, n)
	require.NoError(t, ts[1].Recv(0, tagged(rdma.OpSend, n), in))
	require.NoError(t, check(in, 4))
	// …and fail where it is missing.
	requireLost(t, ts[1].Recv(0, tagged(rdma.OpSend, n), in), 0)
	requireLost(t, ended(t, ts[2]), 0)
}

func testCloseBlocked(t *testing.T, h Harness) {
	ts := h.open(t, 2)
	n := h.bytes(32 << 20)
	recv := start(t, func() error { return ts[0].Recv(1, tagged(rdma.OpSend, 1), make([]byte, 1)) })
	send := start(t, func() error { return ts[0].Send(1, tagged(rdma.OpSend, n), make([]byte, n)) })
	require.NoError(t, ts[0].Close())
	require.ErrorIs(t, recv(), rdma.ErrClosed)
	require.ErrorIs(t, send(), rdma.ErrClosed)
}

func testDoubleClose(t *testing.T, h Harness) {
	ts := h.open(t, 2)
	succeed(t, []int{1, 2, 3}, func(int, int) error { return ts[0].Close() })
	require.NoError(t, ts[0].Close())
	require.ErrorIs(t, ts[0].Send(1, tagged(rdma.OpSend, 1), []byte{1}), rdma.ErrClosed)
	require.ErrorIs(t, ts[0].Recv(1, tagged(rdma.OpSend, 1), []byte{1}), rdma.ErrClosed)
	require.ErrorIs(t, ts[0].SendRecv(tagged(rdma.OpSend, 1), 1, []byte{1}, 1, []byte{1}), rdma.ErrClosed)
	ts[0].Abort(errors.New("nothing is left to abort"))
	require.ErrorIs(t, ts[0].Err(), rdma.ErrClosed)

	// After a failure, Close frees and keeps the cause.
	ts = h.open(t, 2)
	cause := errors.New("cause")
	ts[0].Abort(cause)
	require.NoError(t, ts[0].Close())
	require.NoError(t, ts[0].Close())
	require.Equal(t, cause, ts[0].Err())
}
