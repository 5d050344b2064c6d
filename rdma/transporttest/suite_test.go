package transporttest

import (
	"errors"
	"fmt"
	"runtime"
	"testing"

	"daisy/rdma"
	"daisy/rdma/mem"

	"github.com/stretchr/testify/require"
)

// recorder is a test that may fail.
type recorder struct {
	testing.TB
	failed string
}

func (r *recorder) Helper()                   {}
func (r *recorder) Errorf(f string, a ...any) { r.failed += fmt.Sprintf(f, a...) }
func (r *recorder) FailNow()                  { runtime.Goexit() }

// run returns what f failed with.
func run(t *testing.T, f func(tb testing.TB)) string {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(r)
	}()
	<-done
	return r.failed
}

func open(_ testing.TB, worldSize int) []rdma.Transport { return mem.New(worldSize) }

type linked struct{ rdma.Transport }

func (t linked) Links() []rdma.Link { return []rdma.Link{{Peer: 1 - t.Rank(), Kind: "verbs"}} }

// TestWrongTransport: a transport that is not the one asked for fails.
func TestWrongTransport(t *testing.T) {
	for _, c := range []struct {
		name, fails string
		h           Harness
	}{
		{"right", "", Harness{Kind: "mem", Open: open}},
		{"another kind", "which transport runs", Harness{Kind: "verbs", Open: open}},
		{"absent", "should have 2 item(s)", Harness{Kind: "mem", Open: func(testing.TB, int) []rdma.Transport { return nil }}},
		{"too small", "should have 2 item(s)", Harness{Kind: "mem",
			Open: func(testing.TB, int) []rdma.Transport { return mem.New(1) }}},
		{"links of another kind", "what the link of ranks 0 and 1 is", Harness{Kind: "mem",
			Open: func(testing.TB, int) []rdma.Transport {
				ts := mem.New(2)
				return []rdma.Transport{linked{ts[0]}, linked{ts[1]}}
			}}},
		{"links as they may be", "", Harness{Kind: "mem", LinkKinds: []string{"tcp", "verbs"},
			Open: func(testing.TB, int) []rdma.Transport {
				ts := mem.New(2)
				return []rdma.Transport{linked{ts[0]}, linked{ts[1]}}
			}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			failed := run(t, func(tb testing.TB) { c.h.groups(tb, 2) })
			if c.fails == "" {
				require.Empty(t, failed)
			} else {
				require.Contains(t, failed, c.fails)
			}
		})
	}
}

// TestWired: the wiring that the suite uses to check rings and chains notices
// what it is there for.
func TestWired(t *testing.T) {
	ts := mem.New(4)
	defer func() {
		for _, m := range ts {
			m.Close()
		}
	}()
	w := wired{ts[0], chain}
	require.NoError(t, w.Send(1, rdma.Tag{}, nil))
	require.ErrorIs(t, w.Send(3, rdma.Tag{}, nil), errNoCable)
	require.True(t, errors.Is(ts[1].Err(), rdma.ErrAborted))
	require.True(t, wired{ts[0], ring}.Direct(0, 3))
	require.False(t, wired{ts[0], ring}.Direct(0, 2))
}

// TestValues: the order of summation shows in the bits.
func TestValues(t *testing.T) {
	a, b, c := values(0, 100), values(1, 100), values(2, 100)
	differ := 0
	for i := range a {
		if (a[i]+b[i])+c[i] != a[i]+(b[i]+c[i]) {
			differ++
		}
	}
	require.Greater(t, differ, 10)
}
