package fake_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"daisy/rdma/verbs/fake"
	"daisy/rdma/verbs/provider"
)

const high = slabBytes / 2 // where tests receive

func TestExchange(t *testing.T) {
	both(t, func(t *testing.T, f fake.Fabric) {
		a, b := pair(t, f, fake.Options{}, usual)
		for round, n := range []int{1, 4095, 4096, 4097, 32 << 10, 512 << 10} {
			id := uint64(round) << 40
			for from, to := a, b; ; from, to = b, a {
				require.NoError(t, to.recv(id+1, high, n))
				for i := range n {
					from.mem[i] = byte(i*3 + round)
				}
				clear(to.mem[high : high+n+1])
				require.NoError(t, from.send(id+2, 0, n))
				clear(from.mem[:1]) // early, and below again: it was sent already or is lost
				from.good(id+2, provider.OpSend)
				require.EqualValues(t, n, to.good(id+1, provider.OpRecv).Bytes)
				from.mem[0] = byte(round)
				require.True(t, bytes.Equal(from.mem[:n], to.mem[high:high+n]))
				require.Zero(t, to.mem[high+n])
				if from == b {
					break
				}
			}
		}
	})
}

func TestOrder(t *testing.T) {
	both(t, func(t *testing.T, f fake.Fabric) {
		a, b := pair(t, f, fake.Options{}, usual)
		const n = 100
		for lap := range 60 { // more than the rings hold, early and late sends in turn
			for i := range n {
				if lap%2 == 0 {
					require.NoError(t, b.recv(uint64(i), high+i*4096, 4096))
				}
				a.mem[i*4096] = byte(i + lap)
				require.NoError(t, a.send(uint64(i), i*4096, 4096))
				if lap%2 == 1 {
					require.NoError(t, b.recv(uint64(i), high+i*4096, 4096))
				}
			}
			for i := range n {
				a.good(uint64(i), provider.OpSend)
				b.good(uint64(i), provider.OpRecv)
				require.Equal(t, byte(i+lap), b.mem[high+i*4096])
			}
			a.silent()
			b.silent()
		}
	})
}

// TestFrameMatch: what a SEND spans must be what the RECV spans.
func TestFrameMatch(t *testing.T) {
	for _, c := range []struct{ send, recv int }{{4096, 8192}, {8192, 4096}, {1, 4097}, {4096, 4095}} {
		both(t, func(t *testing.T, f fake.Fabric) {
			a, b := pair(t, f, fake.Options{}, usual)
			require.NoError(t, b.recv(1, high, c.recv))
			require.NoError(t, b.recv(2, high, 4096))
			require.NoError(t, a.send(3, 0, c.send))
			a.good(3, provider.OpSend) // the sender does not learn of it
			w := b.one()
			require.EqualValues(t, 1, w.ID)
			require.Equal(t, provider.WCLocalLength, w.Status)
			w = b.one()
			require.EqualValues(t, 2, w.ID)
			require.Equal(t, provider.WCFlushed, w.Status)
			require.ErrorIs(t, b.recv(4, high, 4096), provider.ErrInvalid)
			require.NoError(t, a.send(5, 0, 4096))
			a.silent()
		})
	}
	both(t, func(t *testing.T, f fake.Fabric) { // as many frames, other lengths: fine
		a, b := pair(t, f, fake.Options{}, usual)
		require.NoError(t, b.recv(1, high, 8192))
		require.NoError(t, a.send(2, 0, 4097))
		require.EqualValues(t, 4097, b.good(1, provider.OpRecv).Bytes)
	})
}

// TestCredits: a SEND is held until the peer has posted a RECV.
func TestCredits(t *testing.T) {
	both(t, func(t *testing.T, f fake.Fabric) {
		a, b := pair(t, f, fake.Options{}, usual)
		a.mem[0] = 42
		require.NoError(t, a.send(1, 0, 4096))
		require.NoError(t, a.send(2, 0, 4096))
		a.silent()
		b.silent()
		require.NoError(t, b.recv(3, high, 4096))
		a.good(1, provider.OpSend)
		a.silent()
		b.good(3, provider.OpRecv)
		b.silent()
		require.EqualValues(t, 42, b.mem[high])
		require.NoError(t, b.recv(4, high, 4096))
		b.good(4, provider.OpRecv) // the sender need not poll for that
		a.good(2, provider.OpSend)
	})
}

// TestCompletionBeforeDelivery: the sender completes before anything arrived,
// and if it then goes nothing will.
func TestCompletionBeforeDelivery(t *testing.T) {
	both(t, func(t *testing.T, f fake.Fabric) {
		a, b := pair(t, f, fake.Options{}, usual)
		require.NoError(t, b.recv(1, high, 4096))
		require.NoError(t, a.send(2, 0, 4096))
		a.good(2, provider.OpSend)
		require.NoError(t, a.qp.Destroy())
		b.silent()
	})
}

// TestDepth: queues are as deep as the frames asked for.
func TestDepth(t *testing.T) {
	both(t, func(t *testing.T, f fake.Fabric) {
		a, b := pair(t, f, fake.Options{}, provider.QPCap{MaxSendWR: 32, MaxRecvWR: 32, MaxSendSGE: 1, MaxRecvSGE: 1})
		const n = 64 << 10 // 16 frames
		require.NoError(t, b.recv(1, high, n))
		require.NoError(t, b.recv(2, high, n))
		require.Equal(t, provider.ErrQueueFull, b.recv(3, high, 1))
		require.NoError(t, a.send(1, 0, n))
		require.NoError(t, a.send(2, 0, n))
		require.Equal(t, provider.ErrQueueFull, a.send(3, 0, 1))
		a.good(1, provider.OpSend) // polling gives the frames back
		require.NoError(t, a.send(3, 0, n))
		require.Equal(t, provider.ErrQueueFull, a.send(4, 0, 1))
		require.Equal(t, provider.ErrQueueFull, b.recv(3, high, 1))
		b.good(1, provider.OpRecv)
		require.NoError(t, b.recv(3, high, n))
		for id := range uint64(2) {
			b.good(id+2, provider.OpRecv)
			a.good(id+2, provider.OpSend)
		}
	})
}

// TestBudget: all queue pairs of a port share its frames, each way.
func TestBudget(t *testing.T) {
	both(t, func(t *testing.T, f fake.Fabric) {
		a, b := pair(t, f, fake.Options{Budget: 48}, usual)
		a2, b2 := *a, *b
		a2.qp, b2.qp = a.newQP(usual), b.newQP(usual)
		a2.connect(b2.endpoint())
		b2.connect(a2.endpoint())
		const n = 64 << 10
		require.NoError(t, b.recv(1, high, n))
		require.NoError(t, b2.recv(2, high, 2*n))
		require.Equal(t, provider.ErrQueueFull, b.recv(3, high, 1))
		require.Equal(t, provider.ErrQueueFull, b2.recv(3, high, 1))
		require.NoError(t, a.send(1, 0, n))
		require.NoError(t, a2.send(2, 0, 2*n))
		require.Equal(t, provider.ErrQueueFull, a.send(3, 0, 1))
		require.Equal(t, provider.ErrQueueFull, a2.send(3, 0, 1))
		require.NoError(t, a.recv(3, high, n), "the other way has frames of its own")
		require.NoError(t, b2.qp.Destroy(), "what a queue pair held comes back with it")
		require.NoError(t, b.recv(4, high, n))
		require.NoError(t, b.recv(5, high, n))
		require.Equal(t, provider.ErrQueueFull, b.recv(6, high, 1))
	})
}

// TestUnsignaled: its frames come back with the next signaled completion.
func TestUnsignaled(t *testing.T) {
	both(t, func(t *testing.T, f fake.Fabric) {
		a, b := pair(t, f, fake.Options{}, provider.QPCap{MaxSendWR: 3, MaxRecvWR: 9, MaxSendSGE: 1, MaxRecvSGE: 1})
		for id := range uint64(4) {
			require.NoError(t, b.recv(id, high, 4096))
		}
		require.NoError(t, a.qp.PostSend(1, a.slot(0, 4096), 0))
		require.NoError(t, a.qp.PostSend(2, a.slot(0, 4096), 0))
		a.silent()
		require.NoError(t, a.send(3, 0, 4096))
		require.Equal(t, provider.ErrQueueFull, a.send(4, 0, 4096))
		a.good(3, provider.OpSend)
		a.silent()
		require.NoError(t, a.send(4, 0, 4096))
		a.good(4, provider.OpSend)
		for id := range uint64(4) {
			b.good(id, provider.OpRecv)
		}
	})
}

// TestOverrun: a completion queue that holds too little breaks.
func TestOverrun(t *testing.T) {
	both(t, func(t *testing.T, f fake.Fabric) {
		wired(t, f, fake.Options{})
		a, b := newSide(t, f, left, usual), newSide(t, f, right, usual)
		small, err := b.ctx.CreateCQ(2)
		require.NoError(t, err)
		require.NoError(t, b.qp.Destroy())
		b.cq = small
		b.qp = b.newQP(usual)
		a.connect(b.endpoint())
		b.connect(a.endpoint())
		for id := range uint64(3) {
			require.NoError(t, b.recv(id, high, 4096))
			require.NoError(t, a.send(id, 0, 4096))
		}
		_, err = b.cq.Poll(make([]provider.WC, 8))
		require.Equal(t, 5, errno(t, err))
		_, err = b.cq.Poll(make([]provider.WC, 8))
		require.Error(t, err)
	})
}

// TestPosts: what a post may not be.
func TestPosts(t *testing.T) {
	both(t, func(t *testing.T, f fake.Fabric) {
		wired(t, f, fake.Options{})
		a, b := newSide(t, f, left, usual), newSide(t, f, right, usual)
		for _, step := range []func() error{
			func() error { return nil },
			func() error { return a.qp.Modify(provider.ToInit(1)) },
			func() error { return a.qp.Modify(a.rtr(b.endpoint())) },
		} {
			require.NoError(t, step())
			require.ErrorIs(t, a.recv(1, 0, 1), provider.ErrInvalid, "before ready-to-send")
			require.ErrorIs(t, a.send(1, 0, 1), provider.ErrInvalid, "before ready-to-send")
		}
		require.NoError(t, a.qp.Modify(provider.ToRTS(provider.UC, provider.PSN)))
		require.NoError(t, a.recv(1, 0, 1))
		require.Equal(t, 22, errno(t, a.qp.PostSend(1, a.slot(0, 1), provider.SendInline)))

		late, err := provider.NewSlab(4096)
		require.NoError(t, err)
		defer func() { require.NoError(t, provider.FreeSlab(late)) }()
		mr, err := a.pd.RegMR(late, provider.MRAccess)
		require.NoError(t, err)
		require.Equal(t, 22, errno(t, a.qp.PostRecv(1, provider.NewSlot(mr, late))), "registered after ready-to-receive")
		require.Equal(t, 22, errno(t, a.qp.PostSend(1, provider.NewSlot(mr, late), provider.SendSignaled)))
		other := newSide(t, f, left, usual)
		require.Equal(t, 22, errno(t, a.qp.PostRecv(1, other.slot(0, 1))), "of another domain")
		inside, end := a.slot(0, 4096), a.slot(slabBytes-4096, 4096)
		for name, s := range map[string]provider.Slot{
			"no such key":  {Addr: inside.Addr, Bytes: 1, LKey: inside.LKey + 7000},
			"past the end": {Addr: end.Addr, Bytes: 4097, LKey: end.LKey},
			"before it":    {Addr: inside.Addr - 1, Bytes: 2, LKey: inside.LKey},
			"far away":     {Addr: end.Addr + 4097, Bytes: 1, LKey: end.LKey},
			"enormous":     {Addr: inside.Addr, Bytes: 1<<32 - 1, LKey: inside.LKey},
		} {
			require.Equal(t, 22, errno(t, a.qp.PostRecv(1, s)), name)
			require.Equal(t, 22, errno(t, a.qp.PostSend(1, s, provider.SendSignaled)), name)
		}
		require.NoError(t, mr.Dereg())
	})
}

// TestLongest: no message is longer than 4095 frames, whatever is registered.
func TestLongest(t *testing.T) {
	both(t, func(t *testing.T, f fake.Fabric) {
		wired(t, f, fake.Options{})
		a, b := newSide(t, f, left, usual), newSide(t, f, right, usual)
		mem, err := provider.NewSlab(provider.MaxMessageBytes + 4096)
		require.NoError(t, err)
		defer func() { require.NoError(t, provider.FreeSlab(mem)) }()
		mr, err := a.pd.RegMR(mem, provider.MRAccess)
		require.NoError(t, err)
		a.connect(b.endpoint())
		for _, post := range []func(provider.Slot) error{
			func(s provider.Slot) error { return a.qp.PostRecv(1, s) },
			func(s provider.Slot) error { return a.qp.PostSend(1, s, provider.SendSignaled) },
		} {
			require.Equal(t, 22, errno(t, post(provider.NewSlot(mr, mem[:provider.MaxMessageBytes+1]))))
			require.Equal(t, provider.ErrQueueFull, post(provider.NewSlot(mr, mem[:provider.MaxMessageBytes])), "beyond the budget alone")
		}
	})
}
