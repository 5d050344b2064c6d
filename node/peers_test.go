package node

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"daisy/node/control"
	"daisy/node/discovery"
	"daisy/node/identity"
)

func fakeID(i int) ID {
	sum := sha256.Sum256(fmt.Append(nil, i))
	return ID(strings.ToLower(strings.TrimRight(base32.StdEncoding.EncodeToString(sum[:]), "=")))
}

// TestACrowdOfAnnouncements: thousands of nodes that do not exist neither fill
// the memory nor push out a peer that answers.
func TestACrowdOfAnnouncements(t *testing.T) {
	a, b := startNode(t, "a", nil), startNode(t, "b", nil)
	meet(t, a, b)
	closedPort := freePort(t)
	for i := range 3000 {
		a.peers.found(discovery.Announcement{ID: fakeID(i), Name: "crowd", Protocol: control.Protocol, Addrs: []netip.AddrPort{closedPort}})
	}
	assert.LessOrEqual(t, len(a.Peers()), maxPeers)
	assert.Equal(t, PeerReady, state(a, b.Self().ID))
}

// TestAnImpostorsAnnouncement: somebody announces b's ID at an address of their
// own, and many more; b stays reachable and is what answers.
func TestAnImpostorsAnnouncement(t *testing.T) {
	a, b, impostor := startNode(t, "a", nil), startNode(t, "b", nil), startNode(t, "impostor", nil)
	id := meet(t, a, b)[0]
	a.peers.found(discovery.Announcement{ID: id, Name: "mine now", Protocol: control.Protocol, Addrs: append(impostor.Self().Addrs, freePort(t))})
	hello, err := a.dialer.Hello(t.Context(), id)
	require.NoError(t, err)
	assert.Equal(t, "b", hello.Name)
	assert.Equal(t, "b", find(a, "b").Name)

}

// TestGoodbyes: one makes a node ask; an answer to a question asked before it
// proves nothing.
func TestGoodbyes(t *testing.T) {
	n := startNode(t, "n", nil)
	id := fakeID(1)
	begin := func() *peer {
		e := &peer{Peer: Peer{ID: id}, probing: true, asked: time.Now(), seen: map[netip.AddrPort]time.Time{freePort(t): time.Now()}}
		n.peers.mu.Lock()
		defer n.peers.mu.Unlock()
		n.peers.list[id] = e
		return e
	}
	hello := control.Hello{Version: control.Protocol, ID: id, Name: "x"}

	begin()
	n.peers.goodbye(id)
	n.peers.greeted(id, control.Hello{}, errors.New("gone"))
	assert.Empty(t, state(n, id), "true: forgotten at once")

	e := begin()
	n.peers.goodbye(id)
	n.peers.mu.Lock()
	e.asked = e.left.Add(time.Nanosecond)
	n.peers.mu.Unlock()
	n.peers.greeted(id, hello, nil)
	n.peers.mu.Lock()
	assert.True(t, e.left.IsZero(), "forged: it answers")
	n.peers.mu.Unlock()

	e = begin()
	n.peers.goodbye(id)
	n.peers.greeted(id, hello, nil) // the question was older
	n.peers.mu.Lock()
	assert.False(t, e.left.IsZero())
	n.peers.mu.Unlock()
	until(t, n, "it is asked again, and gone", func() bool { return state(n, id) == "" })
}

func TestAddressesOfAPeer(t *testing.T) {
	e := &peer{seen: map[netip.AddrPort]time.Time{}}
	now := time.Now()
	addr := func(i int) netip.AddrPort { return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(i)}), 1) }
	for i := range 40 {
		e.seen[addr(i)] = now.Add(time.Duration(i) * time.Second / 4)
	}
	e.refreshAddrs(now.Add(10 * time.Second))
	require.Len(t, e.Addrs, maxAddrs)
	assert.Equal(t, addr(24), e.Addrs[0], "the most recent ones are kept")
	assert.Len(t, e.seen, maxAddrs)
	e.seen[addr(99)] = now.Add(forgetAfter)
	e.refreshAddrs(now.Add(forgetAfter + 20*time.Second))
	assert.Equal(t, []netip.AddrPort{addr(99)}, e.Addrs)
	e.refreshAddrs(now.Add(time.Hour))
	assert.Equal(t, []netip.AddrPort{addr(99)}, e.Addrs, "the last ones known are still worth a try")
	assert.Empty(t, e.seen)
}

func TestGreetingsDecideTheState(t *testing.T) {
	n := startNode(t, "n", nil)
	id := fakeID(1)
	n.peers.mu.Lock()
	n.peers.list[id] = &peer{Peer: Peer{ID: id, Name: "announced"}, probing: true, due: time.Now().Add(time.Hour)}
	n.peers.mu.Unlock()
	for _, c := range []struct {
		trusted bool
		hello   control.Hello
		err     error
		want    PeerState
		reason  string
	}{
		{hello: control.Hello{Version: control.Protocol, Name: "real"}, want: PeerUnpaired},
		{hello: control.Hello{Version: control.Protocol, Name: "real", Paired: true, Busy: true}, want: PeerUnpaired},
		{trusted: true, hello: control.Hello{Version: control.Protocol, Name: "real"}, want: PeerRefused, reason: "pair them again"},
		{trusted: true, hello: control.Hello{Version: control.Protocol, Name: "real", Paired: true}, want: PeerReady},
		{trusted: true, hello: control.Hello{Version: control.Protocol, Name: "real", Paired: true, Busy: true}, want: PeerBusy, reason: "another cluster"},
		{hello: control.Hello{Version: control.Protocol + 1, Name: "real"}, want: PeerIncompatible, reason: fmt.Sprint("version ", control.Protocol+1)},
		{err: fmt.Errorf("x: %w", identity.ErrWrongNode), want: PeerUnreachable, reason: "another node"},
	} {
		if c.trusted {
			require.NoError(t, n.trust.Hand(id))
		}
		n.peers.greeted(id, c.hello, c.err)
		got := find(n, "real")
		assert.Equal(t, c.want, got.State)
		assert.Contains(t, got.Reason, c.reason)
	}
	n.peers.greeted(id, control.Hello{}, errors.New("again"))
	assert.Empty(t, state(n, id), "not announced any more and silent twice: forgotten")
}

func TestUnreachableInWords(t *testing.T) {
	for says, err := range map[string]error{
		"no Daisy listens": &net.OpError{Err: syscall.ECONNREFUSED},
		"local network":    &net.OpError{Err: syscall.EHOSTUNREACH},
		"firewall":         context.DeadlineExceeded,
		"version 3":        fmt.Errorf("x: %w", &control.VersionError{Theirs: 3}),
		"odd thing":        errors.New("odd\nthing"),
	} {
		assert.ErrorContains(t, unreachable(fmt.Errorf("dial: %w", err)), says)
	}
}

// TestDataConnectionsAreForMembersOnly: only the member whose rank it is may
// open a data connection, once, and only while the epoch gathers.
func TestDataConnectionsAreForMembersOnly(t *testing.T) {
	n, b, c := startNode(t, "n", nil), startNode(t, "b", nil), startNode(t, "c", nil)
	a := n.expect(7, 1, []control.Member{{ID: b.Self().ID, Name: "b"}, {ID: n.Self().ID, Name: "n"}, {ID: c.Self().ID, Name: "c"}})
	dial := func(from *Node, p control.Preamble) (net.Conn, error) {
		return from.dialer.DialData(t.Context(), n.Self().ID, n.Self().Addrs, p)
	}
	for name, bad := range map[string]struct {
		from *Node
		p    control.Preamble
	}{
		"another epoch":    {c, control.Preamble{Epoch: 8, From: 2, To: 1}},
		"another's rank":   {b, control.Preamble{Epoch: 7, From: 2, To: 1}},
		"a lower rank":     {b, control.Preamble{Epoch: 7, From: 0, To: 1}},
		"no such rank":     {c, control.Preamble{Epoch: 7, From: 3, To: 1}},
		"huge rank":        {c, control.Preamble{Epoch: 7, From: 1<<32 - 1, To: 1}},
		"for another rank": {c, control.Preamble{Epoch: 7, From: 2, To: 0}},
	} {
		_, err := dial(bad.from, bad.p)
		require.ErrorContains(t, err, "expects no such connection", name)
	}
	good := control.Preamble{Epoch: 7, From: 2, To: 1}
	conn, err := dial(c, good)
	require.NoError(t, err)
	defer conn.Close()
	_, err = dial(c, good)
	require.Error(t, err, "once")
	closed(t, "it arrives", a.arrived)
	assert.Empty(t, a.missing())
	a.forget()
	_, err = dial(c, good)
	require.Error(t, err, "the epoch is over")
}

func TestAssemblyNamesWhoIsMissing(t *testing.T) {
	n := startNode(t, "n", nil)
	members := []control.Member{{ID: n.Self().ID, Name: "n"}, {ID: fakeID(1), Name: "absent"}}
	a := n.expect(7, 0, members)
	defer a.forget()
	assert.Equal(t, []string{"absent"}, a.missing())
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errLeft)
	_, err := a.connect(ctx, nil, nil)
	require.ErrorIs(t, err, ErrClosed)

	b := n.expect(8, 1, []control.Member{{ID: fakeID(1), Name: "absent", Addrs: []netip.AddrPort{freePort(t)}}, members[0]})
	defer b.forget()
	_, err = b.connect(t.Context(), nil, nil)
	require.ErrorIs(t, err, ErrFailed)
	assert.ErrorContains(t, err, "absent failed: no data connection")
}

func TestEventsCoalesceInOrder(t *testing.T) {
	n := &Node{events: newEvents()}
	var got []Event
	cancel := n.Subscribe(func(e Event) { got = append(got, e) })
	for i := range 100 {
		n.events.emit(PeersChanged{})
		n.events.emit(Progress{Loaded: int64(i)})
	}
	n.events.emit(ClusterChanged{})
	ctx, stop := context.WithCancel(t.Context())
	stop()
	n.events.deliver(ctx) // what is queued is delivered also at the end
	assert.Equal(t, []Event{PeersChanged{}, Progress{Loaded: 99}, ClusterChanged{}}, got)
	cancel()
	n.events.emit(PeersChanged{})
	n.events.deliver(ctx)
	assert.Len(t, got, 3)
}

// TestProgressIsTold: a subscriber of the leader hears of asking and loading.
func TestProgressIsTold(t *testing.T) {
	path := writeModel(t, 1)
	leader, member := startNode(t, "leader", yes, path), startNode(t, "member", yes, path)
	ids := meet(t, leader, member)
	var mu sync.Mutex
	stages, total := map[Stage]bool{}, int64(0)
	defer leader.Subscribe(func(e Event) {
		if p, ok := e.(Progress); ok {
			mu.Lock()
			defer mu.Unlock()
			stages[p.Stage] = true
			total = max(total, p.Total)
			assert.LessOrEqual(t, p.Loaded, p.Total)
		}
	})()
	c, err := leader.Join(t.Context(), ids, modelOf(t, leader), fast)
	require.NoError(t, err)
	require.NoError(t, c.Close())
	until(t, leader, "progress of loading", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return stages[StageLoading] && total > 0
	})
}

// freePort is an address where nothing listens.
func freePort(t *testing.T) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).AddrPort()
}
