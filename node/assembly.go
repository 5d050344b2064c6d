package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"daisy/node/control"
	"daisy/rdma"
	"daisy/rdma/heartbeat"
	"daisy/rdma/tcp"
)

// assembleTimeout bounds how long the ranks of a group take to connect.
const assembleTimeout = 15 * time.Second

// assembly gathers one data connection to each other rank of an epoch: this
// rank dials the lower ones and is dialled by the higher ones. It exists from
// before this node's consent is known, so nobody dials too early.
type assembly struct {
	node    *Node
	epoch   uint64
	rank    int
	members []control.Member
	beat    *beat
	arrived chan struct{} // buffer of one: conns has grown

	mu     sync.Mutex // guards the fields below
	conns  []net.Conn // by rank
	taken  []bool     // by rank: a connection is there or on its way
	closed bool       // no more are wanted
}

// expect makes an assembly and lets the server offer connections to it. Whoever
// calls it calls forget.
func (n *Node) expect(epoch uint64, rank int, members []control.Member) *assembly {
	a := &assembly{
		node: n, epoch: epoch, rank: rank, members: members, beat: n.openBeat(), arrived: make(chan struct{}, 1),
		conns: make([]net.Conn, len(members)), taken: make([]bool, len(members)),
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.assemblies[epoch] = a
	return a
}

// forget closes what was not taken over and refuses what still comes.
func (a *assembly) forget() {
	a.node.mu.Lock()
	delete(a.node.assemblies, a.epoch)
	a.node.mu.Unlock()
	a.closeAll()
	a.beat.close()
}

func (a *assembly) closeAll() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	for i, c := range a.conns {
		if c != nil {
			c.Close()
			a.conns[i] = nil
		}
	}
}

// dataFrom is the server's question whether a data connection is expected.
func (n *Node) dataFrom(from ID, p control.Preamble) func(net.Conn) {
	n.mu.Lock()
	a := n.assemblies[p.Epoch]
	n.mu.Unlock()
	if a == nil {
		return nil
	}
	return a.offer(from, p)
}

// offer reserves a higher rank's place, if that rank is who it says it is.
func (a *assembly) offer(from ID, p control.Preamble) func(net.Conn) {
	r := int(p.From)
	if int(p.To) != a.rank || r <= a.rank || r >= len(a.members) || a.members[r].ID != from {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed || a.taken[r] {
		return nil
	}
	a.taken[r] = true
	return func(c net.Conn) {
		if c == nil {
			a.mu.Lock()
			a.taken[r] = false
			a.mu.Unlock()
			return
		}
		a.put(r, c)
	}
}

func (a *assembly) put(rank int, c net.Conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		c.Close()
		return
	}
	a.conns[rank] = c
	select {
	case a.arrived <- struct{}{}:
	default:
	}
}

// connected is a group and what goes with it.
type connected struct {
	group  *rdma.Group
	beats  *heartbeat.Monitor // nil when no other rank has a heartbeat
	shared bool               // another rank is on this machine
}

// connect waits until every other rank is connected and makes the group of
// them. From then on their hearts are watched: lost is told of a rank that falls
// silent, and must not block; the group has been ended then. beatPorts are the
// ranks', as Start has them.
func (a *assembly) connect(ctx context.Context, beatPorts []uint16, lost func(*rdma.PeerLostError)) (connected, error) {
	whole := ctx
	ctx, cancel := context.WithTimeoutCause(ctx, assembleTimeout, errTimeout)
	defer cancel()
	dials, dialCtx := errgroup.WithContext(ctx)
	for r := range a.rank {
		dials.Go(func() error {
			m := a.members[r]
			p := control.Preamble{Epoch: a.epoch, From: uint32(a.rank), To: uint32(r)}
			c, err := a.node.dialer.DialData(dialCtx, m.ID, m.Addrs, p)
			if err != nil {
				return &NodeError{ID: m.ID, Name: m.Name, What: ErrFailed, Reason: fmt.Errorf("no data connection: %w", err)}
			}
			a.put(r, c)
			return nil
		})
	}
	if err := dials.Wait(); err != nil {
		a.closeAll()
		return connected{}, err
	}
	for missing := a.missing(); len(missing) > 0; missing = a.missing() {
		select {
		case <-a.arrived:
		case <-ctx.Done():
			a.closeAll()
			if cause := context.Cause(ctx); !errors.Is(cause, errTimeout) {
				return connected{}, cause
			}
			return connected{}, fmt.Errorf("no data connection from %s within %v", strings.Join(missing, ", "), assembleTimeout)
		}
	}
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return connected{}, ErrClosed
	}
	conns := a.conns
	a.conns, a.closed = make([]net.Conn, len(conns)), true // New owns them now
	a.mu.Unlock()
	var all connected
	for _, c := range conns {
		all.shared = all.shared || c != nil && sameMachine(c)
	}
	watched, err := a.beatPeers(conns, beatPorts)
	if err != nil {
		for _, c := range conns {
			if c != nil {
				c.Close()
			}
		}
		return connected{}, err
	}
	base, err := tcp.New(a.rank, len(conns), a.epoch, conns)
	if err != nil {
		return connected{}, err
	}
	if all.beats, err = a.watch(base, watched, lost); err != nil {
		base.Close()
		return connected{}, err
	}
	transport, err := a.overRDMA(whole, base)
	if err != nil {
		if all.beats != nil {
			all.beats.Close()
		}
		base.Close()
		return connected{}, err
	}
	all.group = rdma.NewGroup(transport, a.epoch)
	return all, nil
}

var errTimeout = errors.New("out of time")

// missing names the higher ranks that have not connected yet.
func (a *assembly) missing() (names []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for r := a.rank + 1; r < len(a.conns); r++ {
		if a.conns[r] == nil {
			names = append(names, a.members[r].Name)
		}
	}
	return names
}

// sameMachine says whether both ends of a connection are on one machine: then
// both have the same address.
func sameMachine(c net.Conn) bool {
	local, err := netip.ParseAddrPort(c.LocalAddr().String())
	if err != nil {
		return false
	}
	remote, err := netip.ParseAddrPort(c.RemoteAddr().String())
	return err == nil && local.Addr() == remote.Addr()
}
