package fake_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"daisy/rdma/verbs/fake"
	"daisy/rdma/verbs/provider"
)

func TestDevices(t *testing.T) {
	both(t, func(t *testing.T, f fake.Fabric) {
		wired(t, f, fake.Options{})
		second := fake.Port{Node: "a", Device: "rdma_en3"}
		require.NoError(t, f.AddDevice(second, fake.Options{}))
		require.Error(t, f.AddDevice(second, fake.Options{}), "twice")
		require.Error(t, f.Wire(left, second), "a cable is in")
		require.Error(t, f.Wire(second, second))
		require.Error(t, f.Pull(second))
		require.Error(t, f.Freeze("c"))
		require.Error(t, f.Fail(second, fake.CallOpen, 0, 5))
		l, err := f.Provider("a")
		require.NoError(t, err)
		names, err := l.Devices()
		require.NoError(t, err)
		require.Equal(t, []string{"rdma_en2", "rdma_en3"}, names)
		_, err = l.Open("rdma_en5")
		require.ErrorIs(t, err, provider.ErrNoDevice, "the other node's")
		nobody, err := f.Provider("c")
		require.NoError(t, err)
		names, err = nobody.Devices()
		require.NoError(t, err)
		require.Empty(t, names)
	})
}

// TestPortDown: without a cable the device opens, and then gives no domain.
func TestPortDown(t *testing.T) {
	both(t, func(t *testing.T, f fake.Fabric) {
		require.NoError(t, f.AddDevice(left, fake.Options{}))
		require.NoError(t, f.AddDevice(right, fake.Options{}))
		ctx := open(t, f, left)
		attr, err := ctx.QueryPort(1)
		require.NoError(t, err)
		require.Equal(t, provider.PortDown, attr.State)
		_, err = ctx.AllocPD()
		require.ErrorIs(t, err, provider.ErrPortDown)
		require.NoError(t, f.Wire(left, right))
		attr, err = ctx.QueryPort(1)
		require.NoError(t, err)
		require.Equal(t, provider.PortAttr{
			State: provider.PortActive, MaxMTU: provider.MTU4096, ActiveMTU: provider.MTU4096,
			GIDTableLen: 4, MaxMessageBytes: 0x1000000, LID: 1, LinkLayer: provider.LinkThunderbolt,
		}, attr)
		_, err = ctx.AllocPD()
		require.NoError(t, err)
		_, err = ctx.QueryPort(2)
		require.ErrorIs(t, err, provider.ErrInvalid)
	})
}

// TestGID: the IPv4-mapped GID has another index on each device, and the step
// to ready-to-receive takes that one alone.
func TestGID(t *testing.T) {
	both(t, func(t *testing.T, f fake.Fabric) {
		wired(t, f, fake.Options{})
		third := fake.Port{Node: "c", Device: "rdma_en2"}
		address := netip.MustParseAddr("192.168.7.1")
		require.NoError(t, f.AddDevice(third, fake.Options{IPv4: address}))
		a, b := newSide(t, f, left, usual), newSide(t, f, right, usual)
		require.NotEqual(t, a.gid.Index, b.gid.Index)
		require.NotZero(t, a.gid.Index)
		require.NotZero(t, b.gid.Index)
		zero, err := a.ctx.QueryGID(1, 0)
		require.NoError(t, err)
		require.Equal(t, byte(0xfe), zero.GID[0])
		_, err = a.ctx.QueryGID(1, 4)
		require.Equal(t, 22, errno(t, err))
		c := open(t, f, third)
		found, err := provider.FindGID(c, 1, address)
		require.NoError(t, err)
		require.Equal(t, provider.GIDOf(address), found.GID)

		require.NoError(t, a.qp.Modify(provider.ToInit(1)))
		refused := func(want int, class error, spoil func(*provider.QPAttr)) {
			t.Helper()
			attr, mask := a.rtr(b.endpoint())
			spoil(&attr)
			err := a.qp.Modify(attr, mask)
			require.Equal(t, want, errno(t, err))
			require.ErrorIs(t, err, class)
		}
		refused(22, provider.ErrAddress, func(q *provider.QPAttr) { q.AV.SGIDIndex = 0 })
		refused(22, provider.ErrAddress, func(q *provider.QPAttr) { q.AV.SGIDIndex = 3 - q.AV.SGIDIndex })
		refused(22, provider.ErrAddress, func(q *provider.QPAttr) { q.AV.SGIDIndex = 200 })
		refused(22, provider.ErrAddress, func(q *provider.QPAttr) { q.AV.DGID = provider.GID{} })
		refused(22, provider.ErrAddress, func(q *provider.QPAttr) { q.AV.IsGlobal = false })
		refused(22, provider.ErrAddress, func(q *provider.QPAttr) { q.AV.Port = 0 })
		refused(22, provider.ErrAddress, func(q *provider.QPAttr) { q.PathMTU = 0 })
		refused(22, provider.ErrAddress, func(q *provider.QPAttr) { q.AV.DGID = a.gid.GID }) // no loopback
		refused(60, provider.ErrUnreachable, func(q *provider.QPAttr) { q.AV.DGID = found.GID })
		refused(60, provider.ErrUnreachable, func(q *provider.QPAttr) { q.AV.DGID = zero.GID })
		require.NoError(t, a.qp.Modify(a.rtr(b.endpoint())), "none of that stays")
	})
}

// TestSteps: each step once, in order, with its exact mask.
func TestSteps(t *testing.T) {
	both(t, func(t *testing.T, f fake.Fabric) {
		wired(t, f, fake.Options{})
		a, b := newSide(t, f, left, usual), newSide(t, f, right, usual)
		init, initMask := provider.ToInit(1)
		rtr, rtrMask := a.rtr(b.endpoint())
		rts, rtsMask := provider.ToRTS(provider.UC, provider.PSN)
		refused := func(attr provider.QPAttr, mask provider.AttrMask) {
			t.Helper()
			require.Equal(t, 22, errno(t, a.qp.Modify(attr, mask)))
		}
		refused(rtr, rtrMask)
		refused(rts, rtsMask)
		refused(init, initMask&^provider.MaskPort)
		wrong := init
		wrong.Port = 2
		refused(wrong, initMask)
		require.NoError(t, a.qp.Modify(init, initMask))
		refused(init, initMask)
		refused(rts, rtsMask)
		refused(rtr, rtrMask&^provider.MaskAV)
		_, rcMask := provider.ToRTR(provider.RC, 1, provider.PortAttr{}, a.gid, b.endpoint())
		refused(rtr, rcMask)
		require.NoError(t, a.qp.Modify(rtr, rtrMask))
		refused(rtr, rtrMask)
		refused(rts, rtsMask|provider.MaskTimeout)
		require.NoError(t, a.qp.Modify(rts, rtsMask))
		state, _, err := a.qp.Query()
		require.NoError(t, err)
		require.Equal(t, provider.StateRTS, state)
	})
}

// TestInjected: every call can be made to fail, once, the nth time.
func TestInjected(t *testing.T) {
	both(t, func(t *testing.T, f fake.Fabric) {
		wired(t, f, fake.Options{})
		a, b := newSide(t, f, left, usual), newSide(t, f, right, usual)
		l, err := f.Provider("a")
		require.NoError(t, err)
		once := func(call fake.Call, do func() error) {
			t.Helper()
			require.NoError(t, f.Fail(left, call, 1, 77))
			require.Equal(t, 77, errno(t, do()), call)
			require.NoError(t, do(), call)
		}
		once(fake.CallOpen, func() error { _, err := l.Open("rdma_en2"); return err })
		once(fake.CallQueryDev, func() error { _, err := a.ctx.QueryDevice(); return err })
		once(fake.CallQueryPort, func() error { _, err := a.ctx.QueryPort(1); return err })
		once(fake.CallQueryGID, func() error { _, err := a.ctx.QueryGID(1, 0); return err })
		once(fake.CallAllocPD, func() error { _, err := a.ctx.AllocPD(); return err })
		once(fake.CallCreateCQ, func() error { _, err := a.ctx.CreateCQ(4); return err })
		once(fake.CallRegMR, func() error { _, err := a.pd.RegMR(a.mem, 7); return err })
		once(fake.CallCreateQP, func() error {
			_, err := a.pd.CreateQP(provider.QPInit{Type: provider.UC, SendCQ: a.cq, RecvCQ: a.cq, Cap: usual})
			return err
		})
		once(fake.CallQueryQP, func() error { _, _, err := a.qp.Query(); return err })
		once(fake.CallModifyInit, func() error { return a.qp.Modify(provider.ToInit(1)) })

		// What users have seen of that step, and what it is taken for.
		for number, class := range map[int]error{
			22: provider.ErrAddress, 60: provider.ErrUnreachable, 96: provider.ErrStale, 16: provider.ErrStale,
		} {
			require.NoError(t, f.Fail(left, fake.CallModifyRTR, 1, number))
			require.ErrorIs(t, a.qp.Modify(a.rtr(b.endpoint())), class)
		}
		require.NoError(t, f.Fail(left, fake.CallRTRDelay, 1, 30))
		started := time.Now()
		once(fake.CallModifyRTR, func() error { return a.qp.Modify(a.rtr(b.endpoint())) })
		require.GreaterOrEqual(t, time.Since(started), 30*time.Millisecond)
		once(fake.CallModifyRTS, func() error { return a.qp.Modify(provider.ToRTS(provider.UC, provider.PSN)) })
		b.connect(a.endpoint())

		once(fake.CallPostRecv, func() error { return a.recv(1, high, 4096) })
		once(fake.CallPostSend, func() error { return a.send(2, 0, 4096) })
		require.NoError(t, f.Fail(left, fake.CallPostSend, 2, 12))
		require.NoError(t, a.send(3, 0, 4096))
		require.Equal(t, provider.ErrQueueFull, a.send(4, 0, 4096), "the second")
		once(fake.CallPollCQ, func() error { _, err := a.cq.Poll(make([]provider.WC, 1)); return err })
		require.NoError(t, f.Fail(left, fake.CallSendWC, 2, int(provider.WCLocalQPOp)))
		require.NoError(t, b.recv(5, high, 4096))
		require.NoError(t, b.recv(6, high, 4096))
		a.good(2, provider.OpSend)
		require.Equal(t, provider.WCLocalQPOp, a.one().Status)
		require.Equal(t, provider.WCFlushed, a.one().Status)

		once(fake.CallDestroyQP, a.qp.Destroy)
		once(fake.CallDeregMR, b.deregOn(t, f))
	})
}

// deregOn gives the release of memory on the left port.
func (s *side) deregOn(t *testing.T, f fake.Fabric) func() error {
	pd, err := open(t, f, left).AllocPD()
	require.NoError(t, err)
	mr, err := pd.RegMR(s.mem, 7)
	require.NoError(t, err)
	return mr.Dereg
}

// TestTeardown: from the top down, each once; after a step to ERR not at all.
func TestTeardown(t *testing.T) {
	both(t, func(t *testing.T, f fake.Fabric) {
		a, b := pair(t, f, fake.Options{}, usual)
		require.ErrorIs(t, a.cq.Destroy(), provider.ErrInUse)
		require.ErrorIs(t, a.pd.Dealloc(), provider.ErrInUse)
		require.ErrorIs(t, a.ctx.Close(), provider.ErrInUse)
		require.NoError(t, f.Fail(left, fake.CallDestroyCQ, 2, 77))
		require.NoError(t, f.Fail(left, fake.CallDeallocPD, 2, 77))
		require.NoError(t, f.Fail(left, fake.CallClose, 2, 77))
		require.ErrorIs(t, a.cq.Destroy(), provider.ErrInUse)
		require.NoError(t, a.qp.Destroy())
		require.NoError(t, a.mr.Dereg())
		for _, release := range []func() error{a.cq.Destroy, a.pd.Dealloc, a.ctx.Close} {
			for range 3 { // the injected failures, at their second call
				if err := release(); err == nil {
					break
				}
			}
			require.ErrorIs(t, release(), provider.ErrReleased)
		}
		require.ErrorIs(t, a.qp.Destroy(), provider.ErrReleased)
		require.ErrorIs(t, a.mr.Dereg(), provider.ErrReleased)
		require.ErrorIs(t, a.recv(1, 0, 1), provider.ErrReleased)
		require.ErrorIs(t, a.send(1, 0, 1), provider.ErrReleased)
		_, err := a.cq.Poll(make([]provider.WC, 1))
		require.ErrorIs(t, err, provider.ErrReleased)
		_, err = a.ctx.QueryPort(1)
		require.ErrorIs(t, err, provider.ErrReleased)
		_, err = a.ctx.AllocPD()
		require.ErrorIs(t, err, provider.ErrReleased)
		_, err = a.pd.RegMR(a.mem, 7)
		require.ErrorIs(t, err, provider.ErrReleased)

		require.NoError(t, b.recv(1, high, 4096))
		require.NoError(t, b.qp.Modify(provider.QPAttr{State: provider.StateErr}, provider.MaskState))
		require.Equal(t, provider.WCFlushed, b.one().Status)
		require.NoError(t, b.qp.Destroy())
		err = b.mr.Dereg()
		require.ErrorIs(t, err, provider.ErrStale)
	})
}
