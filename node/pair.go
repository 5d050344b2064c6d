package node

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"daisy/node/control"
	"daisy/node/pairing"
	"daisy/node/trust"
)

// errStranger is what a node that is not paired hears.
var errStranger = errors.New("the two nodes are not paired; pair them first")

// Pair makes the digits that two people compare so that this node and the peer
// trust each other; the caller shows them and then calls Confirm, Enter or Refuse
// of the Attempt. It blocks until the digits are known, for some seconds at most;
// ctx bounds that only. When the peer has begun already, its Attempt is returned.
// The errors are those of package pairing, ErrUnknownPeer, or why the peer cannot
// be reached. The Attempt ends by itself, at the latest with the node.
func (n *Node) Pair(ctx context.Context, id ID) (*pairing.Attempt, error) {
	if a := n.Pairing(); a != nil && a.Peer == id {
		return a, nil
	}
	if _, ok := n.peers.find(id); !ok {
		return nil, fmt.Errorf("node %s: %w", id.Short(), ErrUnknownPeer)
	}
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return nil, ErrClosed
	}
	n.work.Add(1)
	n.mu.Unlock()
	running := false
	defer func() {
		if !running {
			n.work.Done()
		}
	}()
	leave, err := n.gate.Enter(false)
	if err != nil {
		return nil, err
	}
	// The stream outlives ctx, and ends with the node.
	streamCtx, cancel := context.WithCancel(n.ctx)
	stop := context.AfterFunc(ctx, cancel)
	attempt, shown, err := n.begin(streamCtx, id)
	inTime := stop()
	if err != nil {
		cancel()
		leave(outcome(shown, err))
	} else {
		running = true
		go func() { // Close waits for it by work
			defer n.work.Done()
			defer cancel()
			n.attend(streamCtx, attempt, leave)
		}()
	}
	if !inTime {
		return nil, context.Cause(ctx)
	}
	return attempt, err
}

// begin dials a node and makes the digits with it.
func (n *Node) begin(ctx context.Context, id ID) (*pairing.Attempt, bool, error) {
	lines, err := n.dialer.Pair(ctx, id)
	if err != nil {
		if !errors.Is(err, control.ErrNoPairing) {
			err = unreachable(err)
		}
		return nil, false, err
	}
	attempt, shown, err := pairing.Agree(ctx, lines, pairing.Side{
		Key: n.identity.PublicKey(), Name: n.config.Name, PeerKey: lines.PeerKey(),
	})
	if err != nil {
		return nil, shown, err
	}
	n.show(attempt)
	return attempt, shown, nil
}

// pairedBy serves a pairing that another node began; the control server calls
// it.
func (n *Node) pairedBy(ctx context.Context, lines *control.Lines) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(n.ctx, cancel)()
	leave, err := n.gate.Enter(true)
	if err != nil {
		n.config.Log.Info("pairing turned away", "reason", err)
		pairing.Turn(lines, err)
		return
	}
	attempt, shown, err := pairing.Agree(ctx, lines, pairing.Side{
		Key: n.identity.PublicKey(), Name: n.config.Name, PeerKey: lines.PeerKey(), Incoming: true,
	})
	if err != nil {
		n.config.Log.Info("pairing failed", "reason", err)
		leave(outcome(shown, err))
		return
	}
	n.show(attempt)
	n.attend(ctx, attempt, leave)
}

func outcome(shown bool, err error) pairing.Outcome {
	switch {
	case err == nil:
		return pairing.Paired
	case shown:
		return pairing.Failed
	}
	return pairing.Nothing
}

// show makes an attempt the one that Pairing returns.
func (n *Node) show(a *pairing.Attempt) {
	n.mu.Lock()
	n.attempt = a
	n.mu.Unlock()
	a.Watch(func() { n.events.emit(PairingChanged{}) })
	n.events.emit(PairingChanged{})
}

// attend waits for the two people, keeps the trust and opens the gate again.
func (n *Node) attend(ctx context.Context, a *pairing.Attempt, leave func(pairing.Outcome)) {
	keep := func() error {
		return n.trust.Put(trust.Entry{ID: a.Peer, Name: a.PeerName, Since: time.Now(), Addrs: n.peers.pinned(a.Peer)})
	}
	_ = a.Run(ctx, keep, func(err error) { // Err has it for whoever asks
		n.config.Log.Info("pairing ended", "with", a.Peer.Short(), "name", a.PeerName, "error", err)
		n.mu.Lock()
		n.attempt = nil
		n.mu.Unlock()
		leave(outcome(true, err))
		if err == nil {
			n.trustChanged(a.Peer)
		}
	})
}

// Pairing is the attempt whose digits are to be shown now, or nil.
func (n *Node) Pairing() *pairing.Attempt {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.attempt
}

// Trusted lists the nodes that this one is paired with.
func (n *Node) Trusted() []trust.Entry { return n.trust.List() }

// Trust pairs this node with others without digits, until it ends: for whoever
// owns them all, as a demo or a test does.
func (n *Node) Trust(ids ...ID) error {
	if err := n.trust.Hand(ids...); err != nil {
		return err
	}
	n.trustChanged(ids...)
	return nil
}

// Forget withdraws the trust in a node; a cluster with it that this node leads,
// or that it leads, ends. It blocks on the disk. trust.ErrUnknown if it was not
// trusted.
func (n *Node) Forget(id ID) error {
	if err := n.trust.Remove(id); err != nil {
		return err
	}
	if c := n.Cluster(); c != nil && (c.Leader() == id || c.rank == 0 && slices.ContainsFunc(c.Members(), func(m Member) bool { return m.ID == id })) {
		c.stop(errLeft)
	}
	n.trustChanged(id)
	return nil
}

// SetConsent says what a paired leader's invitations meet. It blocks on the
// disk. trust.ErrUnknown if it is not trusted.
func (n *Node) SetConsent(id ID, c trust.Consent) error {
	if err := n.trust.SetConsent(id, c); err != nil {
		return err
	}
	n.events.emit(PeersChanged{})
	return nil
}

// trustChanged lets the peers' states follow.
func (n *Node) trustChanged(ids ...ID) {
	var members []control.Member
	for _, id := range ids {
		members = append(members, control.Member{ID: id})
	}
	n.peers.recheck(members)
	n.events.emit(PeersChanged{})
}

// admit is the server's question whether a node may ask for more than who this
// one is.
func (n *Node) admit(from ID) error {
	if !n.trust.Has(from) {
		return errStranger
	}
	return nil
}

// Find adds the node at an address to the peers, for networks where Bonjour does
// not reach it. It blocks until the node has answered, ten seconds at most.
func (n *Node) Find(ctx context.Context, addr netip.AddrPort) (Peer, error) {
	id, err := n.dialer.Who(ctx, addr)
	if err != nil {
		return Peer{}, unreachable(err)
	}
	if id == n.identity.ID() {
		return Peer{}, errors.New("this node itself answers there")
	}
	if !n.peers.pin(id, id.Short(), addr) {
		return Peer{}, errors.New("too many nodes are known")
	}
	ctx, cancel := context.WithTimeout(ctx, helloWait)
	defer cancel()
	hello, err := n.dialer.Hello(ctx, id)
	if err != nil {
		return Peer{}, unreachable(err)
	}
	n.peers.greeted(id, hello, nil)
	peer, _ := n.peers.find(id)
	return peer, nil
}
