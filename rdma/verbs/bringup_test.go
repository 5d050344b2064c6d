package verbs_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"daisy/rdma"
	"daisy/rdma/mem"
	"daisy/rdma/verbs"
	"daisy/rdma/verbs/fake"
	"daisy/rdma/verbs/provider"

	"github.com/stretchr/testify/require"
)

// twoRanks have so many cables and do not insist on them.
func twoRanks(tb testing.TB, cables int) *cabling {
	c := newCabling(tb, fake.New(), 2)
	for r := range c.options {
		c.options[r].Require = false
	}
	for range cables {
		c.cable(0, 1)
	}
	return c.open()
}

// exchange sends a long message each way and checks it.
func exchange(tb testing.TB, ts []rdma.Transport) {
	tb.Helper()
	done := make(chan error, 2)
	for r := range 2 {
		go func() {
			out, in := make([]byte, 3<<20), make([]byte, 3<<20)
			out[len(out)-1] = byte(1 + r)
			err := ts[r].SendRecv(rdma.Tag{Op: rdma.OpSend, Bytes: 3 << 20}, 1-r, out, 1-r, in)
			if err == nil && in[len(in)-1] != byte(2-r) {
				err = errors.New("wrong data")
			}
			done <- err
		}()
	}
	require.NoError(tb, <-done)
	require.NoError(tb, <-done)
}

// TestFallBack lets each step of the bring-up fail, on either rank: the pair
// goes to the base, both ranks know why, nothing is left, and it works.
func TestFallBack(t *testing.T) {
	verbs.SetProbeTimeout(t, time.Second)
	for _, op := range []provider.Op{provider.OpListDevices, provider.OpOpen, provider.OpQueryPort, provider.OpQueryGID,
		provider.OpAllocPD, provider.OpRegMR, provider.OpCreateCQ, provider.OpCreateQP, provider.OpQueryQP,
		provider.OpModifyInit, provider.OpModifyRTR, provider.OpModifyRTS, provider.OpPostRecv, provider.OpPostSend, provider.OpPoll} {
		for rank := range 2 {
			t.Run(string(op), func(t *testing.T) {
				c := twoRanks(t, 2)
				var calls atomic.Int32
				second := c.port(rank, 1-rank, 1).Device
				one := op == provider.OpOpen || op == provider.OpQueryPort || op == provider.OpQueryGID
				c.spies[rank].intercept(func(device string, o provider.Op) error {
					switch {
					case o != op, one && device != second:
						return nil
					case calls.Add(1) == 1 && !one && op != provider.OpListDevices:
						return nil // the second call fails: half is made
					}
					return provider.NewError(device, op, 22, true)
				})
				ts := c.mustConnect(t)
				defer closeAll(ts)
				links := make([]rdma.Link, 2)
				for r, tr := range ts {
					links[r] = tr.(rdma.Linker).Links()[0]
				}
				if one { // one of the two cables is enough
					require.Equal(t, "verbs", ts[rank].Kind())
					exchange(t, ts)
					return
				}
				for r, tr := range ts {
					require.Equal(t, "mem", tr.Kind())
					require.Equal(t, "mem", links[r].Kind)
					require.Contains(t, links[r].Reason, string(op), "rank %d", r)
				}
				require.Contains(t, links[1-rank].Reason, "rank", "it is told whose fault it is")
				require.Zero(t, c.spies[0].alive(provider.OpCreateQP)+c.spies[1].alive(provider.OpCreateQP))
				exchange(t, ts)
			})
		}
	}
}

// TestRequired has the same failure where verbs were asked for.
func TestRequired(t *testing.T) {
	c := twoRanks(t, 1)
	c.options[0].Require = true
	c.spies[1].intercept(func(device string, op provider.Op) error {
		if op == provider.OpModifyRTR {
			return provider.NewError(device, op, 60, true)
		}
		return nil
	})
	bases := mem.New(2)
	ts, errs := c.connect(bases)
	require.ErrorIs(t, errs[0], verbs.ErrRequired)
	require.ErrorContains(t, errs[0], "for rank 1: rank 1: rdma_en19: cannot move the queue pair to ready-to-receive: errno 60")
	require.Nil(t, ts[0])
	<-bases[1].Done()
	require.ErrorContains(t, bases[1].Err(), "RDMA was asked for")
	if ts[1] != nil { // it was done before it heard of that
		ts[1].Close()
	}
	bases[0].Close()
	bases[1].Close()
}

// TestOff is a rank whose owner wants no RDMA, beside one that has devices.
func TestOff(t *testing.T) {
	c := twoRanks(t, 1)
	c.options[1].Off = true
	ts := c.mustConnect(t)
	defer closeAll(ts)
	require.Equal(t, "mem", ts[0].Kind())
	require.Equal(t, "RDMA is switched off on this machine", ts[1].(rdma.Linker).Links()[0].Reason)
	require.Equal(t, "rank 1: RDMA is switched off on this machine", ts[0].(rdma.Linker).Links()[0].Reason)
	require.Zero(t, c.spies[1].alive(provider.OpOpen))
	exchange(t, ts)
}

// TestNoLibrary is a machine without any, beside one that has devices.
func TestNoLibrary(t *testing.T) {
	c := twoRanks(t, 1)
	bases := mem.New(2)
	got := make(chan rdma.Transport, 1)
	go func() {
		tr, err := verbs.ConnectWithout(provider.ErrUnavailable, bases[0], c.options[0])
		if err != nil {
			t.Error(err)
		}
		got <- tr
	}()
	tr, err := c.hosts[1].Connect(bases[1], c.options[1])
	require.NoError(t, err)
	ts := []rdma.Transport{<-got, tr}
	defer closeAll(ts)
	require.Equal(t, "mem", tr.Kind())
	require.Contains(t, ts[0].(rdma.Linker).Links()[0].Reason, "no RDMA library")
	require.Contains(t, tr.(rdma.Linker).Links()[0].Reason, "rank 0: there is no RDMA library")
	exchange(t, ts)
}

// TestStuckDriver has a driver that does not come back from the step to
// ready-to-receive: the group goes on without it, the device is not used again,
// and what was made is released when the driver does come back.
func TestStuckDriver(t *testing.T) {
	c := twoRanks(t, 1)
	c.options[1].StepTimeout = time.Millisecond
	release := make(chan struct{})
	var tries atomic.Int32
	c.spies[1].intercept(func(_ string, op provider.Op) error {
		if op == provider.OpModifyRTR {
			tries.Add(1)
			<-release
		}
		return nil
	})
	for range 2 {
		ts := c.mustConnect(t)
		for _, tr := range ts {
			require.Equal(t, "mem", tr.Kind())
			require.Contains(t, tr.(rdma.Linker).Links()[0].Reason, "did not move a queue pair to ready-to-receive within 1ms")
		}
		exchange(t, ts)
		closeAll(ts)
	}
	require.EqualValues(t, 1, tries.Load(), "no blind retry")
	require.Equal(t, 2, c.spies[1].alive(provider.OpCreateQP))
	close(release) // the cleanup checks that nothing is left
}

// TestTimeout has a rank that does not come at all.
func TestTimeout(t *testing.T) {
	c := twoRanks(t, 1)
	c.options[0].Timeout = time.Millisecond
	bases := mem.New(2)
	_, err := c.hosts[0].Connect(bases[0], c.options[0])
	require.ErrorContains(t, err, "bringing up RDMA took longer than 1ms")
	require.ErrorIs(t, bases[1].Err(), rdma.ErrAborted)
	bases[0].Close()
	bases[1].Close()
}

// TestRest has a marker of a process that died while it used the cable.
func TestRest(t *testing.T) {
	c := twoRanks(t, 1)
	dir := t.TempDir()
	c.options[1].MarkerDir = dir
	left := filepath.Join(dir, "rdma-in-use-7.json")
	require.NoError(t, os.WriteFile(left, []byte(`{"devices":["`+c.port(1, 0, 0).Device+`"]}`), 0o600))
	ts := c.mustConnect(t)
	require.Equal(t, "mem", ts[0].Kind())
	require.Contains(t, ts[0].(rdma.Linker).Links()[0].Reason, "rank 1: rdma_en19 rests until")
	require.Contains(t, ts[1].(rdma.Linker).Links()[0].Reason, "a process died while it used this device")
	exchange(t, ts)
	closeAll(ts)

	// Later it is used again, and marked while it is.
	old := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(left, old, old))
	ts = c.mustConnect(t)
	require.Equal(t, "verbs", ts[0].Kind())
	require.NoFileExists(t, left)
	marks, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, marks, 1)
	closeAll(ts)
	marks, err = os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, marks)
}

// TestAgain makes group after group on the same hosts: devices, domains and
// memory are made once.
func TestAgain(t *testing.T) {
	c := twoRanks(t, 2)
	for range 5 {
		ts := c.mustConnect(t)
		require.Equal(t, "verbs", ts[0].Kind())
		exchange(t, ts)
		closeAll(ts)
		require.Zero(t, c.spies[0].alive(provider.OpCreateQP))
		require.Equal(t, 2, c.spies[0].alive(provider.OpRegMR))
		require.Equal(t, 2, c.spies[0].alive(provider.OpAllocPD))
	}
}

func TestLinks(t *testing.T) {
	c := twoRanks(t, 2)
	ts := c.mustConnect(t)
	defer closeAll(ts)
	links := ts[1].(rdma.Linker).Links()
	require.Len(t, links, 1)
	require.Equal(t, 0, links[0].Peer)
	require.Equal(t, "verbs", links[0].Kind)
	require.Equal(t, "rdma_en19+rdma_en18", links[0].Device)
	require.Positive(t, links[0].Latency)
	require.Positive(t, links[0].Bandwidth)
	require.Empty(t, links[0].Reason)
}
