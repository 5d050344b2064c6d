package verbs_test

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"daisy/rdma"
	"daisy/rdma/mem"
	"daisy/rdma/transporttest"
	"daisy/rdma/verbs"
	"daisy/rdma/verbs/fake"
	"daisy/rdma/verbs/provider"

	"github.com/stretchr/testify/require"
)

// BenchmarkExchange compares an exchange of 4 KiB between two ranks, over the
// fake library in C whose wire costs nothing, with a loop of the same copies
// and the bare calls into the library: for each rank one copy in, one post, one
// poll, one copy out, one receive posted again. All runs on one goroutine, so
// nobody waits. ns/op is the median of nine, ratio the median of nine ratios of
// runs that follow each other.
//
// "two posts" is the ratio to a loop that moves the same bytes in two halves,
// as the transport would if a slot were one frame: its header would not fit.
func BenchmarkExchange(b *testing.B) {
	const n, times = 4096, 20000
	c := newCabling(b, inC(b), 2).mesh()
	c.cable(0, 1) // for the bare loops
	b.Cleanup(func() { require.NoError(b, c.fabric.Close()) })
	var ends [2]*bare
	for r := range ends {
		p, err := c.fabric.Provider(node(r))
		require.NoError(b, err)
		h := verbs.NewHost(p)
		b.Cleanup(func() { require.NoError(b, h.Close()) })
		c.hosts = append(c.hosts, h)
		c.options[r].Cables = map[int][]string{1 - r: {c.port(r, 1-r, 0).Device}}
		ends[r] = newBare(b, p, c.port(r, 1-r, 1).Device)
	}
	ends[0].connect(b, ends[1])
	ends[1].connect(b, ends[0])
	ts, errs := c.connect(mem.New(2))
	require.NoError(b, errs[0])
	require.NoError(b, errs[1])
	defer closeAll(ts)

	var out, in [2][]byte
	for r := range out {
		out[r], in[r] = make([]byte, n), make([]byte, n)
	}
	ours := func() error {
		for i := range times {
			tag := rdma.Tag{Op: rdma.OpSend, Seq: uint32(i), Bytes: n}
			for r, t := range ts {
				if err := t.Send(1-r, tag, out[r]); err != nil {
					return err
				}
			}
			for r, t := range ts {
				if err := t.Recv(1-r, tag, in[r]); err != nil {
					return err
				}
			}
		}
		return nil
	}
	loop := func(posts int) func() error {
		return func() error {
			for range times {
				for r, e := range ends {
					if err := e.send(out[r], posts); err != nil {
						return err
					}
				}
				for r, e := range ends {
					if err := e.receive(in[r], posts); err != nil {
						return err
					}
				}
			}
			return nil
		}
	}
	run := func(f func() error) time.Duration {
		start := time.Now()
		require.NoError(b, f())
		return time.Since(start) / times
	}
	for b.Loop() {
		var us, toOne, toTwo []time.Duration // the ratios in thousandths
		for range 9 {
			t, one, two := run(ours), run(loop(1)), run(loop(2))
			us = append(us, t)
			toOne, toTwo = append(toOne, 1000*t/one), append(toTwo, 1000*t/two)
		}
		b.ReportMetric(float64(transporttest.Median(us)), "ns/op")
		b.ReportMetric(float64(transporttest.Median(toOne))/1000, "ratio-to-bare-calls")
		b.ReportMetric(float64(transporttest.Median(toTwo))/1000, "ratio-to-two-posts")
	}
}

// bare is one end of a queue pair without a transport.
type bare struct {
	ctx       provider.Context
	attr      provider.PortAttr
	gid       provider.GIDEntry
	qp        provider.QP
	cq        provider.CQ
	out, in   []provider.Slot
	outB, inB [][]byte
	sent      int
	wcs       [provider.PollBatch]provider.WC
}

func newBare(b *testing.B, p provider.Provider, device string) *bare {
	const depth = 16
	e := &bare{}
	var err error
	e.ctx, err = p.Open(device)
	require.NoError(b, err)
	e.attr, err = e.ctx.QueryPort(1)
	require.NoError(b, err)
	e.gid, err = provider.FindGID(e.ctx, 1, netip.Addr{})
	require.NoError(b, err)
	pd, err := e.ctx.AllocPD()
	require.NoError(b, err)
	e.cq, err = e.ctx.CreateCQ(4 * depth)
	require.NoError(b, err)
	memory, err := provider.NewSlab(2 * depth * provider.FrameBytes)
	require.NoError(b, err)
	mr, err := pd.RegMR(memory, provider.MRAccess)
	require.NoError(b, err)
	for s := range slices.Chunk(memory, provider.FrameBytes) {
		if len(e.out) < depth {
			e.out, e.outB = append(e.out, provider.NewSlot(mr, s)), append(e.outB, s)
		} else {
			e.in, e.inB = append(e.in, provider.NewSlot(mr, s)), append(e.inB, s)
		}
	}
	e.qp, err = pd.CreateQP(provider.QPInit{Type: provider.UC, SendCQ: e.cq, RecvCQ: e.cq,
		Cap: provider.QPCap{MaxSendWR: depth, MaxRecvWR: depth, MaxSendSGE: 1, MaxRecvSGE: 1}})
	require.NoError(b, err)
	b.Cleanup(func() {
		require.NoError(b, e.qp.Destroy())
		require.NoError(b, mr.Dereg())
		require.NoError(b, provider.FreeSlab(memory))
		require.NoError(b, e.cq.Destroy())
		require.NoError(b, pd.Dealloc())
		require.NoError(b, e.ctx.Close())
	})
	return e
}

func (e *bare) connect(b *testing.B, to *bare) {
	require.NoError(b, e.qp.Modify(provider.ToInit(1)))
	require.NoError(b, e.qp.Modify(provider.ToRTR(provider.UC, 1, e.attr, e.gid,
		provider.Endpoint{QPN: to.qp.Num(), PSN: provider.PSN, LID: to.attr.LID, GID: to.gid.GID})))
	require.NoError(b, e.qp.Modify(provider.ToRTS(provider.UC, provider.PSN)))
	for i, s := range e.in {
		require.NoError(b, e.qp.PostRecv(uint64(i), s))
	}
}

// send copies p into as many slots, together, and posts them.
func (e *bare) send(p []byte, posts int) error {
	for i := range posts {
		slot := e.sent % len(e.out)
		copy(e.outB[slot], p[len(p)/posts*i:][:len(p)/posts])
		if err := e.qp.PostSend(uint64(slot), e.out[slot], provider.SendSignaled); err != nil {
			return err
		}
		e.sent++
	}
	return nil
}

// receive polls for as many slots and copies them to p.
func (e *bare) receive(p []byte, posts int) error {
	for i := 0; i < posts; {
		n, err := e.cq.Poll(e.wcs[:])
		if err != nil {
			return err
		}
		for _, wc := range e.wcs[:n] {
			if wc.Opcode != provider.OpRecv {
				continue
			}
			copy(p[len(p)/posts*i:][:len(p)/posts], e.inB[wc.ID])
			if err := e.qp.PostRecv(wc.ID, e.in[wc.ID]); err != nil {
				return err
			}
			i++
		}
	}
	return nil
}

// BenchmarkAllReduce measures the collective over the fake in Go.
func BenchmarkAllReduce(b *testing.B) {
	transporttest.Bench(b, transporttest.Harness{
		Kind: "verbs",
		Open: func(tb testing.TB, worldSize int) []rdma.Transport {
			return newCabling(tb, fake.New(), worldSize).mesh().open().mustConnect(tb)
		},
	})
}
