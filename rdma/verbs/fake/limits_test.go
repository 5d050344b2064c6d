package fake_test

import (
	"os"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"daisy/rdma/verbs/fake"
	"daisy/rdma/verbs/provider"
)

// TestLimits: each device has so many of each, for all its users together.
func TestLimits(t *testing.T) {
	both(t, func(t *testing.T, f fake.Fabric) {
		wired(t, f, fake.Options{})
		a, other := newSide(t, f, left, usual), open(t, f, left)
		qps := []provider.QP{a.qp}
		for range provider.AppleMaxQP - 1 {
			qps = append(qps, a.newQP(usual))
		}
		_, err := a.pd.CreateQP(provider.QPInit{Type: provider.UC, SendCQ: a.cq, RecvCQ: a.cq, Cap: usual})
		require.Equal(t, 16, errno(t, err))
		require.ErrorIs(t, err, provider.ErrLimit)
		require.ErrorContains(t, err, "10")
		require.NoError(t, qps[3].Destroy())
		qps[3] = a.newQP(usual)
		numbers := map[uint32]bool{}
		for _, q := range qps {
			numbers[q.Num()] = true
		}
		require.Len(t, numbers, len(qps))

		pds := []provider.PD{}
		for range provider.AppleMaxPD - 1 {
			pd, err := other.AllocPD()
			require.NoError(t, err)
			pds = append(pds, pd)
		}
		_, err = a.ctx.AllocPD()
		require.Equal(t, 12, errno(t, err))
		require.ErrorIs(t, err, provider.ErrLimit)
		require.NotErrorIs(t, err, provider.ErrPortDown)
		require.NoError(t, pds[0].Dealloc())
		_, err = a.ctx.AllocPD()
		require.NoError(t, err)

		for range provider.AppleMaxCQ - 1 {
			_, err := other.CreateCQ(16)
			require.NoError(t, err)
		}
		_, err = a.ctx.CreateCQ(16)
		require.ErrorIs(t, err, provider.ErrLimit)

		mem, err := provider.NewSlab(1)
		require.NoError(t, err)
		defer func() { require.NoError(t, provider.FreeSlab(mem)) }()
		var mr provider.MR
		for i := range provider.AppleMaxMR - 1 {
			mr, err = pds[1+i%9].RegMR(mem, provider.AccessLocalWrite)
			require.NoError(t, err)
		}
		_, err = a.pd.RegMR(mem, provider.MRAccess)
		require.Equal(t, 12, errno(t, err))
		require.ErrorIs(t, err, provider.ErrLimit)
		require.NoError(t, mr.Dereg())
		_, err = a.pd.RegMR(mem, provider.MRAccess)
		require.NoError(t, err)

		attr, err := a.ctx.QueryDevice()
		require.NoError(t, err)
		require.Equal(t, provider.DeviceAttr{
			MaxMRBytes: 0xfa0000, MaxQP: 11, MaxQPWR: 4095, MaxSGE: 1, MaxCQ: 11, MaxCQE: 4096, MaxMR: 100, MaxPD: 11, Ports: 1,
		}, attr)
	})
}

// TestKinds: unacknowledged queue pairs of modest size alone.
func TestKinds(t *testing.T) {
	both(t, func(t *testing.T, f fake.Fabric) {
		wired(t, f, fake.Options{})
		a := newSide(t, f, left, usual)
		create := func(typ provider.QPType, c provider.QPCap) error {
			_, err := a.pd.CreateQP(provider.QPInit{Type: typ, SendCQ: a.cq, RecvCQ: a.cq, Cap: c})
			return err
		}
		err := create(provider.RC, usual)
		require.Equal(t, 102, errno(t, err))
		require.ErrorIs(t, err, provider.ErrUnsupported)
		for _, spoil := range []func(*provider.QPCap){
			func(c *provider.QPCap) { c.MaxSendWR = 4096 },
			func(c *provider.QPCap) { c.MaxRecvWR = 4096 },
			func(c *provider.QPCap) { c.MaxSendSGE = 2 },
			func(c *provider.QPCap) { c.MaxRecvSGE = 2 },
			func(c *provider.QPCap) { c.MaxInlineBytes = 64 },
		} {
			c := usual
			spoil(&c)
			require.ErrorIs(t, create(provider.UC, c), provider.ErrInvalid)
		}
		require.ErrorIs(t, create(provider.UC, provider.QPCap{MaxSendWR: 1, MaxSendSGE: 1, MaxRecvWR: 4095, MaxRecvSGE: 1}), nil)
		state, granted, err := a.qp.Query()
		require.NoError(t, err)
		require.Equal(t, provider.StateReset, state)
		require.Equal(t, usual, granted)

		for _, depth := range []int{0, -1, 4097} {
			_, err := a.ctx.CreateCQ(depth)
			require.Error(t, err)
		}
		_, err = a.pd.CreateQP(provider.QPInit{Type: provider.UC, SendCQ: nil, RecvCQ: a.cq, Cap: usual})
		require.ErrorIs(t, err, provider.ErrInvalid)
	})
}

// TestMemory: what cannot be registered.
func TestMemory(t *testing.T) {
	both(t, func(t *testing.T, f fake.Fabric) {
		wired(t, f, fake.Options{})
		a := newSide(t, f, left, usual)
		refused := func(mem []byte, access provider.Access) {
			t.Helper()
			_, err := a.pd.RegMR(mem, access)
			require.Equal(t, 22, errno(t, err))
			require.ErrorIs(t, err, provider.ErrInvalid)
		}
		refused(nil, provider.MRAccess)
		refused(a.mem[1:], provider.MRAccess)
		refused(a.mem, provider.AccessRemoteRead)

		mem := crossing(t)
		refused(mem, provider.MRAccess)
		mr, err := a.pd.RegMR(mem[:len(mem)/2], provider.MRAccess)
		require.NoError(t, err, "up to the boundary")
		require.NoError(t, mr.Dereg())
	})
}

// crossing is memory with a 4 GiB boundary in its middle.
func crossing(t *testing.T) []byte {
	page := uintptr(os.Getpagesize())
	for i := uintptr(16); i < 64; i++ {
		want := i<<32 - page
		at, err := unix.MmapPtr(-1, 0, *(*unsafe.Pointer)(unsafe.Pointer(&want)), 2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, unix.MunmapPtr(at, 2*page)) })
		if uintptr(at) == want {
			return unsafe.Slice((*byte)(at), 2*page)
		}
	}
	t.Fatal("no boundary is free")
	return nil
}
