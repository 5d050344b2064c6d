package provider_test

import (
	"errors"
	"net/netip"
	"os"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"daisy/rdma/verbs/provider"
)

// TestErrors holds what the known failures match and what they tell a person.
func TestErrors(t *testing.T) {
	const apple, linux = true, false
	for _, c := range []struct {
		op     provider.Op
		errno  int
		apple  bool
		is     error
		phrase string
	}{
		{provider.OpModifyRTR, 22, apple, provider.ErrAddress, "IPv4"},
		{provider.OpModifyRTR, 60, apple, provider.ErrUnreachable, "cable"},
		{provider.OpModifyRTR, 110, linux, provider.ErrUnreachable, "ETIMEDOUT"},
		{provider.OpModifyRTR, 96, apple, provider.ErrStale, "restart"},
		{provider.OpModifyRTR, 16, apple, provider.ErrStale, "restart"},
		{provider.OpModifyRTR, 61, linux, provider.ErrAddress, "index"},
		{provider.OpModifyInit, 22, linux, provider.ErrInvalid, "refused"},
		{provider.OpCreateQP, 16, apple, provider.ErrLimit, "cannot help"},
		{provider.OpCreateQP, 102, apple, provider.ErrUnsupported, "UC"},
		{provider.OpCreateQP, 95, linux, provider.ErrUnsupported, "EOPNOTSUPP"},
		{provider.OpRegMR, -12, apple, provider.ErrLimit, "100"},
		{provider.OpRegMR, 12, linux, provider.ErrLimit, "ulimit"},
		{provider.OpRegMR, -102, apple, provider.ErrUnsupported, "support"},
		{provider.OpAllocPD, 0, apple, provider.ErrLimit, "protection domains"},
		{provider.OpPostSend, -22, apple, provider.ErrInvalid, "registered"},
		{provider.OpDestroyCQ, 16, linux, provider.ErrInUse, "in use"},
		{provider.OpOpen, 19, apple, provider.ErrNoDevice, "ENODEV"},
	} {
		err := provider.NewError("rdma_en2", c.op, c.errno, c.apple)
		require.ErrorIs(t, err, c.is)
		require.Contains(t, err.Error(), c.phrase)
		require.Contains(t, err.Error(), "rdma_en2: cannot "+string(c.op))
	}
	down := &provider.Error{Device: "rdma_en2", Op: provider.OpAllocPD, Apple: true, PortDown: true}
	require.ErrorIs(t, down, provider.ErrPortDown)
	require.NotErrorIs(t, down, provider.ErrLimit)

	unknown := provider.NewError("rdma_en2", provider.OpModifyRTS, 77, apple)
	require.Equal(t, "rdma_en2: cannot move the queue pair to ready-to-send: errno 77", unknown.Error())
	require.False(t, errors.Is(unknown, nil))
}

func TestFrames(t *testing.T) {
	for n, want := range map[int]int{0: 1, 1: 1, 4096: 1, 4097: 2, 8192: 2, provider.MaxMessageBytes: 4095} {
		require.Equal(t, want, provider.Frames(n), n)
	}
}

func TestSlab(t *testing.T) {
	page := os.Getpagesize()
	mem, err := provider.NewSlab(page + 1)
	require.NoError(t, err)
	require.Len(t, mem, 2*page)
	start := uintptr(unsafe.Pointer(&mem[0]))
	require.Zero(t, start%uintptr(page))
	require.False(t, provider.CrossesBoundary(start, len(mem)))
	mem[len(mem)-1] = 1
	require.NoError(t, provider.FreeSlab(mem))

	for _, n := range []int{-1, 0, provider.MaxSlabBytes + 1} {
		_, err := provider.NewSlab(n)
		require.Error(t, err)
	}
	require.True(t, provider.CrossesBoundary(1<<32-1, 2))
	require.False(t, provider.CrossesBoundary(1<<32-2, 2))
	require.False(t, provider.CrossesBoundary(1<<32, 1<<30))
}

// table is a Context with nothing but a GID table.
type table struct {
	provider.Context
	entries []provider.GIDEntry
	length  int
}

func (t table) Device() string { return "rdma_en2" }

func (t table) QueryPort(uint8) (provider.PortAttr, error) {
	return provider.PortAttr{GIDTableLen: t.length}, nil
}

func (t table) QueryGID(_ uint8, index int) (provider.GIDEntry, error) {
	for _, e := range t.entries {
		if e.Index == index {
			return e, nil
		}
	}
	if index == 3 {
		return provider.GIDEntry{}, provider.NewError("rdma_en2", provider.OpQueryGID, 22, true)
	}
	return provider.GIDEntry{Index: index}, nil
}

func TestFindGID(t *testing.T) {
	a, b := netip.MustParseAddr("169.254.1.2"), netip.MustParseAddr("10.0.0.1")
	local := provider.GID(netip.MustParseAddr("fe80::1").As16())
	ctx := table{length: 1 << 20, entries: []provider.GIDEntry{
		{Index: 0, GID: local},
		{Index: 2, GID: provider.GIDOf(a), Type: provider.GIDRoCEv1},
		{Index: 5, GID: provider.GIDOf(a), Type: provider.GIDRoCEv2},
		{Index: 6, GID: provider.GIDOf(b)},
	}}
	e, err := provider.FindGID(ctx, 1, netip.Addr{})
	require.NoError(t, err)
	require.Equal(t, 5, e.Index, "RoCE v2 before v1, past an entry that cannot be read")
	e, err = provider.FindGID(ctx, 1, b)
	require.NoError(t, err)
	require.Equal(t, 6, e.Index)
	e, err = provider.FindGID(ctx, 1, netip.AddrFrom16(b.As16()))
	require.NoError(t, err)
	require.Equal(t, 6, e.Index, "a 4-in-6 address is the same address")

	_, err = provider.FindGID(ctx, 1, netip.MustParseAddr("10.9.9.9"))
	require.ErrorIs(t, err, provider.ErrNoGID)
	ctx.entries = ctx.entries[:1]
	_, err = provider.FindGID(ctx, 1, netip.Addr{})
	require.ErrorIs(t, err, provider.ErrNoGID)
}

// TestMasks compares the steps with the masks that are known to work.
func TestMasks(t *testing.T) {
	_, init := provider.ToInit(1)
	require.EqualValues(t, 0x39, init)
	_, rtr := provider.ToRTR(provider.UC, 1, provider.PortAttr{}, provider.GIDEntry{}, provider.Endpoint{})
	require.EqualValues(t, 0x101181, rtr)
	_, rts := provider.ToRTS(provider.UC, 7)
	require.EqualValues(t, 0x10001, rts)
	_, rtr = provider.ToRTR(provider.RC, 1, provider.PortAttr{}, provider.GIDEntry{}, provider.Endpoint{})
	require.EqualValues(t, 0x129181, rtr)
	_, rts = provider.ToRTS(provider.RC, 7)
	require.EqualValues(t, 0x12e01, rts)
}
