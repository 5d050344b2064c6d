package fake_test

import (
	"fmt"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"daisy/rdma/verbs/fake"
	"daisy/rdma/verbs/fake/cfake"
	"daisy/rdma/verbs/provider"
)

var library string // the C fake, compiled once

func TestMain(m *testing.M) {
	os.Exit(func() int {
		if library = os.Getenv(childLibrary); library != "" {
			return m.Run()
		}
		dir, err := os.MkdirTemp("", "fakeverbs")
		if err == nil {
			defer os.RemoveAll(dir)
			library, err = cfake.Build(dir)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		code := m.Run()
		if err := goleak.Find(); err != nil && code == 0 {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return code
	}())
}

// both runs a test over both fakes.
func both(t *testing.T, test func(*testing.T, fake.Fabric)) {
	t.Run("go", func(t *testing.T) { test(t, fake.New()) })
	t.Run("c", func(t *testing.T) {
		f, err := cfake.Make(library)
		require.NoError(t, err)
		defer func() { require.NoError(t, f.Close()) }()
		test(t, f)
	})
}

var (
	left  = fake.Port{Node: "a", Device: "rdma_en2"}
	right = fake.Port{Node: "b", Device: "rdma_en5"}
)

// wired makes two nodes with one cable.
func wired(t *testing.T, f fake.Fabric, o fake.Options) {
	require.NoError(t, f.AddDevice(left, o))
	require.NoError(t, f.AddDevice(right, o))
	require.NoError(t, f.Wire(left, right))
}

func open(t *testing.T, f fake.Fabric, p fake.Port) provider.Context {
	l, err := f.Provider(p.Node)
	require.NoError(t, err)
	ctx, err := l.Open(p.Device)
	require.NoError(t, err)
	return ctx
}

const slabBytes = 4 << 20

// side is one end of a queue pair, ready to be connected.
type side struct {
	t   *testing.T
	ctx provider.Context
	gid provider.GIDEntry
	cq  provider.CQ
	pd  provider.PD
	mem []byte
	mr  provider.MR
	qp  provider.QP
}

// size of a queue pair's queues, unless a test wants another.
var usual = provider.QPCap{MaxSendWR: 512, MaxRecvWR: 512, MaxSendSGE: 1, MaxRecvSGE: 1}

func newSide(t *testing.T, f fake.Fabric, p fake.Port, c provider.QPCap) *side {
	return sideOf(t, open(t, f, p), c)
}

func sideOf(t *testing.T, ctx provider.Context, c provider.QPCap) *side {
	s := &side{t: t, ctx: ctx}
	var err error
	s.gid, err = provider.FindGID(s.ctx, 1, netip.Addr{})
	require.NoError(t, err)
	s.cq, err = s.ctx.CreateCQ(provider.CQDepth)
	require.NoError(t, err)
	s.pd, err = s.ctx.AllocPD()
	require.NoError(t, err)
	s.mem, err = provider.NewSlab(slabBytes)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, provider.FreeSlab(s.mem)) })
	s.mr, err = s.pd.RegMR(s.mem, provider.MRAccess)
	require.NoError(t, err)
	s.qp = s.newQP(c)
	return s
}

func (s *side) newQP(c provider.QPCap) provider.QP {
	qp, err := s.pd.CreateQP(provider.QPInit{Type: provider.UC, SendCQ: s.cq, RecvCQ: s.cq, Cap: c})
	require.NoError(s.t, err)
	return qp
}

func (s *side) endpoint() provider.Endpoint {
	return provider.Endpoint{QPN: s.qp.Num(), PSN: provider.PSN, LID: 1, GID: s.gid.GID}
}

// rtr is the step that brings s towards a peer, for tests that spoil it.
func (s *side) rtr(peer provider.Endpoint) (provider.QPAttr, provider.AttrMask) {
	attr, err := s.ctx.QueryPort(1)
	require.NoError(s.t, err)
	return provider.ToRTR(provider.UC, 1, attr, s.gid, peer)
}

func (s *side) connect(peer provider.Endpoint) {
	require.NoError(s.t, s.qp.Modify(provider.ToInit(1)))
	require.NoError(s.t, s.qp.Modify(s.rtr(peer)))
	require.NoError(s.t, s.qp.Modify(provider.ToRTS(provider.UC, provider.PSN)))
}

// pair makes two connected sides on one cable.
func pair(t *testing.T, f fake.Fabric, o fake.Options, c provider.QPCap) (a, b *side) {
	wired(t, f, o)
	a, b = newSide(t, f, left, c), newSide(t, f, right, c)
	a.connect(b.endpoint())
	b.connect(a.endpoint())
	return a, b
}

func (s *side) slot(offset, n int) provider.Slot {
	return provider.NewSlot(s.mr, s.mem[offset:][:n])
}

func (s *side) send(id uint64, offset, n int) error {
	return s.qp.PostSend(id, s.slot(offset, n), provider.SendSignaled)
}

func (s *side) recv(id uint64, offset, n int) error { return s.qp.PostRecv(id, s.slot(offset, n)) }

// one is the next completion, which is there or comes at once.
func (s *side) one() provider.WC {
	s.t.Helper()
	wcs := make([]provider.WC, 1)
	for until := time.Now().Add(10 * time.Second); ; {
		n, err := s.cq.Poll(wcs)
		require.NoError(s.t, err)
		if n == 1 {
			return wcs[0]
		}
		require.True(s.t, time.Now().Before(until), "no completion came")
	}
}

func (s *side) good(id uint64, op provider.Opcode) provider.WC {
	s.t.Helper()
	w := s.one()
	require.Equal(s.t, provider.WCSuccess, w.Status, w.Status.String())
	require.Equal(s.t, id, w.ID)
	require.Equal(s.t, op, w.Opcode)
	return w
}

// silent: no completion is there. The fakes move things in posts and polls
// alone, so one look suffices; a few let every queue pair have its turn.
func (s *side) silent() {
	s.t.Helper()
	wcs := make([]provider.WC, 4)
	for range 3 {
		n, err := s.cq.Poll(wcs)
		require.NoError(s.t, err)
		require.Zero(s.t, n, "%+v", wcs[0])
	}
}

// errno is the number in an error of a provider.
func errno(t *testing.T, err error) int {
	t.Helper()
	var e *provider.Error
	require.ErrorAs(t, err, &e)
	require.True(t, e.Apple || e.Op == provider.OpOpen, "an open device tells whose numbers it gives")
	return e.Errno
}
