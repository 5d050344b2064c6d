package verbs_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"daisy/rdma"
	"daisy/rdma/verbs"
	"daisy/rdma/verbs/fake"
	"daisy/rdma/verbs/provider"

	"github.com/stretchr/testify/require"
)

// traffic exchanges messages between all ranks until that fails, and returns
// each rank's error.
func exchangeUntilFailure(t *testing.T, ts []rdma.Transport, n int) (running <-chan struct{}, errs chan error) {
	started, results := make(chan struct{}, len(ts)), make(chan error, len(ts))
	for r, tr := range ts {
		go func() {
			next, before := (r+1)%len(ts), (r+len(ts)-1)%len(ts)
			out, in := make([]byte, n), make([]byte, n)
			for i := 0; ; i++ {
				tag := rdma.Tag{Op: rdma.OpAllGather, Seq: uint32(i), Bytes: uint64(n)}
				if err := tr.SendRecv(tag, next, out, before, in); err != nil {
					results <- err
					return
				}
				if i == 3 {
					started <- struct{}{}
				}
			}
		}()
	}
	all := make(chan struct{})
	go func() {
		for range ts {
			<-started
		}
		close(all)
	}()
	return all, results
}

func wait[T any](t *testing.T, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(30 * time.Second):
		t.Fatal("stuck")
	}
	return v
}

// TestPulledCable pulls a cable in the middle of messages. Nothing tells of it
// but the port's state; the group ends on all ranks.
func TestPulledCable(t *testing.T) {
	for _, n := range []int{100, 1 << 20} {
		c := newCabling(t, fake.New(), 3).mesh().open()
		ts := c.mustConnect(t)
		running, errs := exchangeUntilFailure(t, ts, n)
		wait(t, running)
		require.NoError(t, c.fabric.Pull(c.port(0, 1, 0)))
		for range ts {
			err := wait(t, errs)
			require.ErrorContains(t, err, "PORT_DOWN")
			require.ErrorContains(t, err, "check the cable")
		}
		var link *verbs.LinkError
		if errors.As(ts[0].Err(), &link) {
			require.Equal(t, 1, link.Peer)
			require.Equal(t, c.port(0, 1, 0).Device, link.Device)
		}
		closeAll(ts)

		// Without Require the next group does without that cable.
		for r := range c.options {
			c.options[r].Require = false
		}
		ts = c.mustConnect(t)
		require.Equal(t, "verbs+mem", ts[0].Kind())
		require.Equal(t, "verbs", ts[2].Kind())
		require.Contains(t, ts[0].(rdma.Linker).Links()[0].Reason, "PORT_DOWN")
		closeAll(ts)
	}
}

// TestPulledWhileIdle is the same with no call in progress.
func TestPulledWhileIdle(t *testing.T) {
	c := newCabling(t, fake.New(), 2).mesh().open()
	ts := c.mustConnect(t)
	defer closeAll(ts)
	require.NoError(t, c.fabric.Pull(c.port(0, 1, 0)))
	wait(t, ts[0].Done())
	wait(t, ts[1].Done())
	require.ErrorContains(t, ts[0].Err(), "PORT_DOWN")
}

// TestFrozenPeer is a machine that died: its port stays active and nothing
// comes. That is the base's to notice; nobody hangs when it does.
func TestFrozenPeer(t *testing.T) {
	c := newCabling(t, fake.New(), 2).mesh().open()
	ts := c.mustConnect(t)
	running, errs := exchangeUntilFailure(t, ts, 1<<20)
	wait(t, running)
	require.NoError(t, c.fabric.Freeze(node(1)))
	ts[0].Abort(&rdma.PeerLostError{Rank: 1, Cause: errors.New("no heartbeat")})
	require.ErrorIs(t, wait(t, errs), rdma.ErrPeerLost)
	require.ErrorIs(t, wait(t, errs), rdma.ErrPeerLost)
	closeAll(ts)
}

// TestProviderFails lets calls and completions fail in mid-operation.
func TestProviderFails(t *testing.T) {
	fails := func(op provider.Op) func(s *spy) {
		return func(s *spy) {
			s.intercept(func(device string, o provider.Op) error {
				if o == op {
					return provider.NewError(device, op, -22, true)
				}
				return nil
			})
		}
	}
	for _, c := range []struct {
		name, want string
		inject     func(s *spy)
	}{
		{"post send", "cannot post a send", fails(provider.OpPostSend)},
		{"post receive", "cannot post a receive", fails(provider.OpPostRecv)},
		{"poll", "cannot poll", fails(provider.OpPoll)},
		{"status", "length error", func(s *spy) {
			s.tamper(func(_ string, wcs []provider.WC) { wcs[0].Status = provider.WCLocalLength })
		}},
		{"length", "instead of", func(s *spy) {
			s.tamper(func(_ string, wcs []provider.WC) {
				for i := range wcs {
					wcs[i].Bytes--
				}
			})
		}},
		{"unknown request", "never posted", func(s *spy) {
			s.tamper(func(_ string, wcs []provider.WC) { wcs[0].ID = 1 << 40 })
		}},
		{"unknown class", "never posted", func(s *spy) {
			s.tamper(func(_ string, wcs []provider.WC) { wcs[0].ID = 7 << 16 })
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newCabling(t, fake.New(), 3).mesh().open()
			ts := d.mustConnect(t)
			running, errs := exchangeUntilFailure(t, ts, 200<<10)
			wait(t, running)
			c.inject(d.spies[1])
			for range ts {
				require.ErrorContains(t, wait(t, errs), c.want)
			}
			var link *verbs.LinkError
			require.ErrorAs(t, ts[1].Err(), &link)
			require.Contains(t, link.Error(), link.Device)
			require.ErrorIs(t, ts[0].Err(), rdma.ErrAborted)
			require.ErrorContains(t, ts[0].Err(), "rank 1 ended the group: the RDMA link to rank")
			d.spies[1].intercept(nil)
			d.spies[1].tamper(nil)
			closeAll(ts)
		})
	}
}

// TestQueueFull has a provider that refuses posts now and then because its
// queue is full: that is no failure.
func TestQueueFull(t *testing.T) {
	c := newCabling(t, fake.New(), 2).mesh().open()
	ts := c.mustConnect(t)
	var refused atomic.Int32
	for i, s := range c.spies {
		var n atomic.Int32
		n.Store(int32(i))
		s.intercept(func(device string, op provider.Op) error {
			// It is full only while something is outstanding.
			if op == provider.OpPostSend && s.seen(device).sends > 0 || op == provider.OpPostRecv {
				if n.Add(1)%3 == 0 {
					refused.Add(1)
					return provider.ErrQueueFull
				}
			}
			return nil
		})
	}
	for range 5 {
		exchange(t, ts)
	}
	for _, s := range c.spies {
		s.intercept(nil)
	}
	require.Positive(t, refused.Load())
	closeAll(ts)
}

// TestChecksum damages a slot on its way.
func TestChecksum(t *testing.T) {
	c := newCabling(t, fake.New(), 2).mesh()
	c.options[1].Checksum = true // one side's wish is enough
	ts := c.open().mustConnect(t)
	exchange(t, ts)
	defer closeAll(ts)
	require.NoError(t, ts[0].Send(1, rdma.Tag{Op: rdma.OpSend, Bytes: 5}, []byte("hello")))
	c.spies[1].tamper(func(string, []provider.WC) { verbs.Damage(ts[1], 0) })
	err := ts[1].Recv(0, rdma.Tag{Op: rdma.OpSend, Bytes: 5}, make([]byte, 5))
	require.ErrorContains(t, err, "its checksum is wrong")
}
