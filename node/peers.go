package node

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"daisy/node/control"
	"daisy/node/discovery"
	"daisy/node/identity"
	"daisy/node/trust"
)

// Peer is another node as this one sees it.
type Peer struct {
	ID    ID
	Name  string
	Addrs []netip.AddrPort
	State PeerState
	// Reason explains State in words for people; "" when there is nothing to
	// explain.
	Reason      string
	Paired      bool // this node trusts it
	Protocol    int  // version it speaks
	Cores       int  // 0 while unknown
	MemoryBytes int64
}

// PeerState is where a peer stands.
type PeerState string

// The states.
const (
	PeerFound        PeerState = "found"        // announced; not yet reached
	PeerUnpaired     PeerState = "unpaired"     // it answers, but this node does not trust it
	PeerRefused      PeerState = "refused"      // trusted here, but it does not trust this node
	PeerReady        PeerState = "ready"        // paired; it can be invited
	PeerMember       PeerState = "member"       // in the cluster this node is in
	PeerBusy         PeerState = "busy"         // in another cluster
	PeerUnreachable  PeerState = "unreachable"  // announced, but does not answer
	PeerIncompatible PeerState = "incompatible" // speaks another version
)

const (
	maxPeers   = 256
	maxAddrs   = 16 // of one peer
	maxProbes  = 8  // at once
	helloEvery = 5 * time.Second
	busyEvery  = time.Second // people wait for a busy peer
	helloWait  = 5 * time.Second
	maxBackoff = 30 * time.Second
	// firstBackoff is the wait after the first greeting that failed.
	firstBackoff = time.Second
	// forgetAfter is how long a silent peer stays in the list, unreachable.
	forgetAfter = time.Minute
)

// peers is the list. An announcement puts a peer into it; greetings over a
// connection, which prove who answers, decide its state.
type peers struct {
	node *Node
	wake chan struct{} // buffer of one: somebody is due

	mu   sync.Mutex // guards list and the entries
	list map[ID]*peer
}

type peer struct {
	Peer
	seen     map[netip.AddrPort]time.Time // announced addresses, and when last
	pinned   []netip.AddrPort             // addresses that a person gave; they do not age
	due      time.Time                    // of the next greeting
	probing  bool
	failures int
	asked    time.Time // when the last greeting began
	left     time.Time // when it said goodbye: forget it when it does not answer
}

func newPeers(n *Node) *peers {
	return &peers{node: n, wake: make(chan struct{}, 1), list: map[ID]*peer{}}
}

// Peers returns the other nodes, by name and then ID. It does not block.
func (n *Node) Peers() []Peer {
	var members []Member
	if c := n.Cluster(); c != nil {
		members = c.Members()
	}
	n.peers.mu.Lock()
	defer n.peers.mu.Unlock()
	out := make([]Peer, 0, len(n.peers.list))
	for _, p := range n.peers.list {
		peer := p.Peer
		peer.Addrs = slices.Clone(p.Addrs)
		peer.Paired = n.trust.Has(p.ID)
		if slices.ContainsFunc(members, func(m Member) bool { return m.ID == p.ID }) {
			peer.State, peer.Reason = PeerMember, ""
		}
		out = append(out, peer)
	}
	slices.SortFunc(out, func(a, b Peer) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return out
}

// find returns the peer with that ID.
func (p *peers) find(id ID) (Peer, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e, ok := p.list[id]
	if !ok {
		return Peer{}, false
	}
	return e.Peer, true
}

// addrs is where a node may be found; for the dialler.
func (p *peers) addrs(id ID) []netip.AddrPort {
	peer, _ := p.find(id)
	return slices.Clone(peer.Addrs)
}

// found takes an announcement. Anybody can forge one, so it only adds
// addresses to try and never changes what a greeting has proved.
func (p *peers) found(a discovery.Announcement) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	e := p.list[a.ID]
	if e == nil {
		if len(p.list) >= maxPeers && !p.forgetOne() {
			return
		}
		e = &peer{Peer: Peer{ID: a.ID, Name: a.Name, State: PeerFound, Protocol: a.Protocol}, seen: map[netip.AddrPort]time.Time{}, due: now}
		p.list[a.ID] = e
		p.node.events.emit(PeersChanged{})
	}
	for _, addr := range a.Addrs {
		if _, known := e.seen[addr]; !known {
			e.due = now // a new address is worth a new try
		}
		e.seen[addr] = now
	}
	e.refreshAddrs(now)
	p.poke()
}

// pin adds a node at addresses that a person gave, and says whether there was
// room; without addresses it does nothing.
func (p *peers) pin(id ID, name string, addrs ...netip.AddrPort) bool {
	if len(addrs) == 0 {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	e := p.list[id]
	if e == nil {
		if len(p.list) >= maxPeers && !p.forgetOne() {
			return false
		}
		e = &peer{Peer: Peer{ID: id, Name: name, State: PeerFound}, seen: map[netip.AddrPort]time.Time{}}
		p.list[id] = e
	}
	for _, a := range addrs {
		if !slices.Contains(e.pinned, a) {
			e.pinned = append([]netip.AddrPort{a}, e.pinned[:min(len(e.pinned), trust.MaxAddrs-1)]...)
		}
	}
	e.due = now
	e.refreshAddrs(now)
	p.node.events.emit(PeersChanged{})
	p.poke()
	return true
}

// pinned are the addresses that a person gave for a node.
func (p *peers) pinned(id ID) []netip.AddrPort {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.list[id]; e != nil {
		return slices.Clone(e.pinned)
	}
	return nil
}

// refreshAddrs drops stale addresses and keeps the most recent ones.
func (e *peer) refreshAddrs(now time.Time) {
	addrs := make([]netip.AddrPort, 0, len(e.seen))
	for addr, at := range e.seen {
		if now.Sub(at) > forgetAfter {
			delete(e.seen, addr)
			continue
		}
		addrs = append(addrs, addr)
	}
	slices.SortFunc(addrs, func(a, b netip.AddrPort) int {
		return cmp.Or(e.seen[b].Compare(e.seen[a]), a.Compare(b))
	})
	for _, addr := range addrs[min(len(addrs), maxAddrs):] {
		delete(e.seen, addr)
	}
	addrs = append(addrs[:min(len(addrs), maxAddrs)], e.pinned...)
	if len(addrs) == 0 {
		return // the last ones known are still worth a try
	}
	slices.SortFunc(addrs, netip.AddrPort.Compare)
	e.Addrs = addrs
}

// forgetOne makes room: the peers that never answered go first, and none that
// answers does.
func (p *peers) forgetOne() bool {
	for id, e := range p.list {
		if !e.probing && len(e.pinned) == 0 && (e.State == PeerUnreachable || e.State == PeerFound) {
			delete(p.list, id)
			return true
		}
	}
	return false
}

// goodbye asks a peer that said it goes whether that is true: anybody can forge
// a goodbye.
func (p *peers) goodbye(id identity.ID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e := p.list[id]; e != nil {
		e.left = time.Now()
		e.due = e.left
		p.poke()
	}
}

// recheck greets peers at once, because a cluster with them has ended.
func (p *peers) recheck(members []control.Member) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range members {
		if e := p.list[m.ID]; e != nil {
			e.due = time.Now()
		}
	}
	p.poke()
}

func (p *peers) poke() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// watch greets the peers that are due, until the node closes.
func (p *peers) watch() {
	var probes sync.WaitGroup
	defer probes.Wait()
	slots := make(chan struct{}, maxProbes)
	for {
		id, wait := p.nextDue()
		if id == "" {
			select {
			case <-p.node.ctx.Done():
				return
			case <-p.wake:
			case <-time.After(wait):
			}
			continue
		}
		select {
		case slots <- struct{}{}:
		case <-p.node.ctx.Done():
			return
		}
		probes.Go(func() {
			defer func() { <-slots }()
			ctx, cancel := context.WithTimeout(p.node.ctx, helloWait)
			defer cancel()
			hello, err := p.node.dialer.Hello(ctx, id)
			if p.node.ctx.Err() == nil {
				p.greeted(id, hello, err)
			}
		})
	}
}

// nextDue returns a peer to greet now and marks it, or how long there is none.
func (p *peers) nextDue() (ID, time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, wait := time.Now(), helloEvery
	for id, e := range p.list {
		if e.probing {
			continue
		}
		if !e.due.After(now) {
			e.probing, e.asked = true, now
			return id, 0
		}
		wait = min(wait, e.due.Sub(now))
	}
	return "", wait
}

// greeted notes how a greeting went.
func (p *peers) greeted(id ID, hello control.Hello, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.list[id]
	if e == nil {
		return
	}
	now := time.Now()
	e.probing = false
	e.refreshAddrs(now)
	before := e.Peer
	if err != nil {
		if len(e.pinned) == 0 && (!e.left.IsZero() || len(e.seen) == 0 && e.failures > 0) {
			delete(p.list, id)
			p.node.events.emit(PeersChanged{})
			return
		}
		e.due = now.Add(min(firstBackoff<<min(e.failures, 10), maxBackoff))
		e.failures++
		e.State, e.Reason = PeerUnreachable, unreachable(err).Error()
	} else {
		e.failures, e.due = 0, now.Add(helloEvery)
		if e.left.Before(e.asked) {
			e.left = time.Time{} // the goodbye was forged, or it came back
		}
		e.Name, e.Protocol, e.Cores, e.MemoryBytes = hello.Name, hello.Version, hello.Cores, hello.MemoryBytes
		switch {
		case hello.Version != control.Protocol:
			e.State, e.Reason = PeerIncompatible, (&control.VersionError{Theirs: hello.Version}).Error()
		case !p.node.trust.Has(id):
			e.State, e.Reason = PeerUnpaired, ""
		case !hello.Paired:
			e.State, e.Reason = PeerRefused, "it does not know this node, or not any more; pair them again"
		case hello.Busy:
			e.State, e.Reason, e.due = PeerBusy, "in another cluster", now.Add(busyEvery)
		default:
			e.State, e.Reason = PeerReady, ""
		}
	}
	if !e.left.IsZero() {
		e.due = now // it said goodbye while it was being asked
	}
	if before.State != e.State || before.Reason != e.Reason || before.Name != e.Name {
		p.node.events.emit(PeersChanged{})
	}
	p.poke()
}

// unreachable says in words why a peer does not answer.
func unreachable(err error) error {
	var timeout net.Error
	var version *control.VersionError
	switch {
	case errors.As(err, &version):
		return version
	case errors.Is(err, identity.ErrWrongNode):
		return identity.ErrWrongNode
	case errors.Is(err, syscall.ECONNREFUSED):
		return errors.New("no Daisy listens at its address any more")
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return errors.New("there is no way to its address; is the local network allowed for Daisy?")
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return errors.New("it does not answer; a firewall may be in the way")
	}
	return errors.New(control.CleanReason(err.Error()))
}
