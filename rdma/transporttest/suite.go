// Package transporttest is the conformance suite of rdma transports. A
// transport joins it in a few lines:
//
//	func TestConformance(t *testing.T) {
//		transporttest.Run(t, transporttest.Harness{Kind: "mem", Open: open, Kill: kill})
//	}
//
// Run checks the contract of rdma.Transport and then every collective over the
// transport, for all world sizes up to eight, against serial code. A transport
// that turns out to be of another kind than the one asked for fails.
package transporttest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"daisy/rdma"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// Harness makes the transports under test.
type Harness struct {
	// Kind is what Transport.Kind must return.
	Kind string
	// Open returns connected transports, by rank. The suite closes them.
	Open func(tb testing.TB, worldSize int) []rdma.Transport
	// Kill makes a rank vanish as the death of its process would: without a
	// farewell. It may be called while the rank is in use.
	Kill func(t rdma.Transport)
	// LinkKinds are the kinds that the links of the transport may have; none
	// means that all are of Kind.
	LinkKinds []string
	// Worlds are the world sizes of the collectives, 1 to 8 unless set. Cases
	// that need more ranks than the largest are skipped.
	Worlds []int
	// MaxBytes limits the length of messages where a transport is slow, as on
	// an emulated device. It must be several times the EagerLimit; 0 is no
	// limit.
	MaxBytes int
	// Allocations allows for a library below the transport that allocates: so
	// many times per collective of three ranks. Transports themselves must not.
	Allocations float64
}

// patience bounds every wait of the suite; only a hang uses it up.
const patience = time.Minute

// Run runs the suite.
func Run(t *testing.T, h Harness) {
	t.Run("transport", func(t *testing.T) { h.runCases(t, transportCases) })
	t.Run("group", func(t *testing.T) { h.runCases(t, groupCases) })
	t.Run("collectives", func(t *testing.T) { runCollectives(t, h) })
}

type testCase struct {
	name  string
	ranks int // how many it needs
	run   func(t *testing.T, h Harness)
}

func (h Harness) runCases(t *testing.T, cases []testCase) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if most := slices.Max(h.worlds()); c.ranks > most {
				t.Skipf("needs %d ranks; this harness has at most %d", c.ranks, most)
			}
			c.run(t, h)
		})
	}
}

func (h Harness) worlds() []int {
	if len(h.Worlds) > 0 {
		return h.Worlds
	}
	return []int{1, 2, 3, 4, 5, 6, 7, 8}
}

// bytes is n, or less where messages are limited.
func (h Harness) bytes(n int) int {
	if h.MaxBytes > 0 {
		return min(n, h.MaxBytes)
	}
	return n
}

// open makes the transports, checks who they are, and closes them at the end
// of the test, after which no goroutine of theirs may be left.
func (h Harness) open(tb testing.TB, worldSize int) []rdma.Transport {
	tb.Helper()
	if t, ok := tb.(*testing.T); ok {
		before := goleak.IgnoreCurrent()
		t.Cleanup(func() { goleak.VerifyNone(t, before) })
	}
	ts := h.Open(tb, worldSize)
	tb.Cleanup(func() {
		for _, t := range ts {
			t.Close()
		}
	})
	require.Len(tb, ts, worldSize)
	for r, t := range ts {
		require.Equal(tb, h.Kind, t.Kind(), "which transport runs")
		require.Equal(tb, r, t.Rank())
		require.Equal(tb, worldSize, t.WorldSize())
		require.NoError(tb, t.Err())
	}
	return ts
}

// groups is open with a Group around every transport.
func (h Harness) groups(tb testing.TB, worldSize int) []*rdma.Group {
	tb.Helper()
	if worldSize == 1 {
		return []*rdma.Group{rdma.Solo()}
	}
	gs, _ := h.groupsAndTransports(tb, worldSize)
	return gs
}

func (h Harness) groupsAndTransports(tb testing.TB, worldSize int) ([]*rdma.Group, []rdma.Transport) {
	tb.Helper()
	ts := h.open(tb, worldSize)
	return h.wrap(tb, ts), ts
}

// wrap makes groups and checks what their data go over.
func (h Harness) wrap(tb testing.TB, ts []rdma.Transport) []*rdma.Group {
	tb.Helper()
	gs := make([]*rdma.Group, len(ts))
	kinds := h.LinkKinds
	if len(kinds) == 0 {
		kinds = []string{h.Kind}
	}
	for r, t := range ts {
		gs[r] = rdma.NewGroup(t, 7)
		tb.Cleanup(func() { gs[r].Close() })
		links := gs[r].Links()
		require.Len(tb, links, len(ts)-1)
		for i, l := range links {
			peer := i
			if i >= r {
				peer++
			}
			require.Equal(tb, peer, l.Peer, "links of rank %d", r)
			require.Contains(tb, kinds, l.Kind, "what the link of ranks %d and %d is", r, peer)
		}
	}
	return gs
}

// start runs f and returns a function that waits for its result.
func start(tb testing.TB, f func() error) (wait func() error) {
	done := make(chan error, 1)
	go func() { done <- f() }()
	return func() error {
		tb.Helper()
		select {
		case err := <-done:
			return err
		case <-time.After(patience):
			tb.Fatal("stuck")
			return nil
		}
	}
}

// all runs f for every member at once and returns what each returned.
func all[M any](tb testing.TB, members []M, f func(rank int, m M) error) []error {
	tb.Helper()
	waits := make([]func() error, len(members))
	for r, m := range members {
		waits[r] = start(tb, func() error { return f(r, m) })
	}
	errs := make([]error, len(members))
	for r, wait := range waits {
		errs[r] = wait()
	}
	return errs
}

// succeed is all, where nobody may fail.
func succeed[M any](tb testing.TB, members []M, f func(rank int, m M) error) {
	tb.Helper()
	for r, err := range all(tb, members, f) {
		require.NoError(tb, err, "rank %d", r)
	}
}

// requireLost checks that err says that this rank, and no other, was lost.
func requireLost(tb testing.TB, err error, rank int) {
	tb.Helper()
	require.ErrorIs(tb, err, rdma.ErrPeerLost)
	var lost *rdma.PeerLostError
	require.True(tb, errors.As(err, &lost), "%v", err)
	require.Equal(tb, rank, lost.Rank, "%v", err)
}

// ended waits until a transport or group has ended by itself.
func ended(tb testing.TB, m interface {
	Done() <-chan struct{}
	Err() error
}) error {
	tb.Helper()
	select {
	case <-m.Done():
		return m.Err()
	case <-time.After(patience):
		tb.Fatal("still alive")
		return nil
	}
}

// fill writes a pattern that depends on seed. Its period is a prime, so that a
// shift by any usual block shows.
func fill(p []byte, seed int) {
	const period = 4093
	x := uint32(seed)*2654435761 + 12345
	for i := range min(period, len(p)) {
		x = x*1664525 + 1013904223
		p[i] = byte(x >> 24)
	}
	for n := period; n < len(p); n *= 2 {
		copy(p[n:], p[:n])
	}
}

// check compares p with the pattern.
func check(p []byte, seed int) error {
	want := make([]byte, len(p))
	fill(want, seed)
	if bytes.Equal(p, want) {
		return nil
	}
	for i := range p {
		if p[i] != want[i] {
			return fmt.Errorf("byte %d of %d differs", i, len(p))
		}
	}
	return nil
}
