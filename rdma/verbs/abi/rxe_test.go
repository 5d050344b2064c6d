package abi_test

import (
	"bytes"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"daisy/rdma/verbs/abi"
	"daisy/rdma/verbs/provider"
)

// softRoCE is the system's library, on a machine where the kernel's soft-RoCE
// devices rxe0 and rxe1 face each other: the virtual machine that
// make test-rdma-vm starts, which says so in DAISY_RXE. There they must be.
func softRoCE(t *testing.T) *abi.Library {
	must := os.Getenv("DAISY_RXE") != ""
	l, err := abi.Load()
	if err != nil && !must {
		t.Skip("no verbs library, so no soft-RoCE: ", err)
	}
	require.NoError(t, err)
	names, err := l.Devices()
	require.NoError(t, err)
	if !must && !(slices.Contains(names, "rxe0") && slices.Contains(names, "rxe1")) {
		t.Skipf("no devices rxe0 and rxe1 among %q: make test-rdma-vm has them", names)
	}
	require.Contains(t, names, "rxe0")
	require.Contains(t, names, "rxe1")
	return l
}

// end is one device with all that a ping-pong needs.
type end struct {
	ctx  provider.Context
	attr provider.PortAttr
	gid  provider.GIDEntry
	pd   provider.PD
	cq   provider.CQ
	mem  []byte
	mr   provider.MR
	qp   provider.QP
}

const depth = 8

func open(t *testing.T, p provider.Provider, name string, typ provider.QPType) *end {
	e := &end{}
	var err error
	e.ctx, err = p.Open(name)
	require.NoError(t, err)
	e.attr, err = e.ctx.QueryPort(1)
	require.NoError(t, err)
	require.Equal(t, provider.PortActive, e.attr.State)
	require.Equal(t, provider.LinkEthernet, e.attr.LinkLayer)
	e.gid, err = provider.FindGID(e.ctx, 1, netip.Addr{})
	require.NoError(t, err)
	require.Equal(t, provider.GIDRoCEv2, e.gid.Type)
	e.pd, err = e.ctx.AllocPD()
	require.NoError(t, err)
	e.cq, err = e.ctx.CreateCQ(4 * depth)
	require.NoError(t, err)
	e.mem, err = provider.NewSlab(1 << 20)
	require.NoError(t, err)
	e.mr, err = e.pd.RegMR(e.mem, provider.MRAccess)
	require.NoError(t, err)
	e.qp, err = e.pd.CreateQP(provider.QPInit{Type: typ, SendCQ: e.cq, RecvCQ: e.cq, Cap: provider.QPCap{
		MaxSendWR: depth, MaxRecvWR: depth, MaxSendSGE: 1, MaxRecvSGE: 1,
	}})
	require.NoError(t, err)
	require.NotZero(t, e.qp.Num())
	t.Cleanup(func() { // the documented order
		require.NoError(t, e.qp.Destroy())
		require.NoError(t, e.mr.Dereg())
		require.NoError(t, provider.FreeSlab(e.mem))
		require.NoError(t, e.cq.Destroy())
		require.NoError(t, e.pd.Dealloc())
		require.NoError(t, e.ctx.Close())
		require.ErrorIs(t, e.ctx.Close(), provider.ErrReleased)
		require.ErrorIs(t, e.qp.PostRecv(1, provider.Slot{}), provider.ErrReleased)
	})
	return e
}

func (e *end) connect(t *testing.T, typ provider.QPType, to *end) {
	require.NoError(t, e.qp.Modify(provider.ToInit(1)))
	peer := provider.Endpoint{QPN: to.qp.Num(), PSN: provider.PSN, LID: to.attr.LID, GID: to.gid.GID}
	require.NoError(t, e.qp.Modify(provider.ToRTR(typ, 1, e.attr, e.gid, peer)))
	require.NoError(t, e.qp.Modify(provider.ToRTS(typ, provider.PSN)))
	state, capacity, err := e.qp.Query()
	require.NoError(t, err)
	require.Equal(t, provider.StateRTS, state)
	require.GreaterOrEqual(t, capacity.MaxSendWR, uint32(depth))
}

// one waits for a completion.
func (e *end) one(t *testing.T) provider.WC {
	wcs := make([]provider.WC, 1)
	for until := time.Now().Add(30 * time.Second); ; {
		n, err := e.cq.Poll(wcs)
		require.NoError(t, err)
		if n == 1 {
			require.Equal(t, provider.WCSuccess, wcs[0].Status, wcs[0].Status.String())
			require.Equal(t, e.qp.Num(), wcs[0].QPN)
			return wcs[0]
		}
		require.True(t, time.Now().Before(until), "no completion")
	}
}

func TestSoftRoCEPingPong(t *testing.T) {
	l := softRoCE(t)
	for _, typ := range []provider.QPType{provider.UC, provider.RC} {
		t.Run(typ.String(), func(t *testing.T) {
			a, b := open(t, l, "rxe0", typ), open(t, l, "rxe1", typ)
			a.connect(t, typ, b)
			b.connect(t, typ, a)
			const half = 512 << 10 // what is sent lies below, what is received above
			for round, n := range []int{1, 4095, 4096, 4097, 64 << 10, half} {
				for _, e := range []*end{a, b} {
					require.NoError(t, e.qp.PostRecv(uint64(round), provider.NewSlot(e.mr, e.mem[half:half+n])))
				}
				ping(t, a, b, uint64(100+round), n)
				ping(t, b, a, uint64(200+round), n)
			}
		})
	}
}

func ping(t *testing.T, from, to *end, id uint64, n int) {
	const half = 512 << 10
	for i := range n {
		from.mem[i] = byte(uint64(i)*7 + id)
	}
	require.NoError(t, from.qp.PostSend(id, provider.NewSlot(from.mr, from.mem[:n]), provider.SendSignaled))
	got := to.one(t)
	require.Equal(t, provider.OpRecv, got.Opcode)
	require.EqualValues(t, n, got.Bytes)
	require.True(t, bytes.Equal(from.mem[:n], to.mem[half:half+n]))
	sent := from.one(t)
	require.Equal(t, id, sent.ID)
	require.Equal(t, provider.OpSend, sent.Opcode)
}

// TestSoftRoCEErrors: the errors of a real library come out as the classes of
// package provider.
func TestSoftRoCEErrors(t *testing.T) {
	l := softRoCE(t)
	_, err := l.Open("rxe7")
	require.ErrorIs(t, err, provider.ErrNoDevice)
	e := open(t, l, "rxe0", provider.UC)

	attr, err := e.ctx.QueryDevice()
	require.NoError(t, err)
	require.Equal(t, 1, attr.Ports)
	require.Greater(t, attr.MaxQP, 10)
	_, err = e.ctx.QueryPort(9)
	require.ErrorIs(t, err, provider.ErrInvalid)
	_, err = e.ctx.QueryGID(1, 1<<20)
	require.Error(t, err)
	_, err = e.ctx.CreateCQ(1 << 30)
	require.Error(t, err)
	_, err = e.pd.RegMR(e.mem[:0:0], 1<<5) // remote atomics, without local writing
	require.Error(t, err)
	require.ErrorIs(t, e.pd.Dealloc(), provider.ErrInUse)

	require.NoError(t, e.qp.Modify(provider.ToInit(1)))
	wrong := e.gid
	wrong.Index = 200
	require.ErrorIs(t, e.qp.Modify(provider.ToRTR(provider.UC, 1, e.attr, wrong, provider.Endpoint{QPN: 1, GID: e.gid.GID})), provider.ErrAddress)

	for range 1 << 16 {
		if err = e.qp.PostRecv(1, provider.NewSlot(e.mr, e.mem[:4096])); err != nil {
			break
		}
	}
	require.Equal(t, provider.ErrQueueFull, err)
}

func TestUnavailable(t *testing.T) {
	_, err := abi.LoadPath("libno-such-thing.so")
	require.ErrorIs(t, err, provider.ErrUnavailable)
	require.ErrorContains(t, err, "libno-such-thing.so")
	libc := map[string]string{"linux": "libc.so.6", "darwin": "/usr/lib/libSystem.B.dylib"}
	_, err = abi.LoadPath(libc[runtime.GOOS])
	require.ErrorIs(t, err, provider.ErrUnavailable)
	require.ErrorContains(t, err, "ibv_", "the missing function is named")
}
