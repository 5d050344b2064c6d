package session

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"daisy/node"
	"daisy/node/pairing"
)

// pairingNode is a real node with its view model.
type pairingNode struct {
	*Pairings
	node   *node.Node
	signal chan struct{}
	told   chan string // by paired
}

func newPairingNode(t *testing.T, name string) *pairingNode {
	t.Helper()
	name = fmt.Sprintf("%s %d", name, os.Getpid())
	n, err := node.Start(t.Context(), node.Config{Dir: filepath.Join(t.TempDir(), "node"), Name: name, Interfaces: []string{loopback(t)}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, n.Close()) })
	p := &pairingNode{node: n, signal: make(chan struct{}, 1), told: make(chan string, 10)}
	p.Pairings = NewPairings(PairerOf(n), func(id string) { p.told <- id })
	t.Cleanup(p.Close)
	p.Subscribe(func() {
		select {
		case p.signal <- struct{}{}:
		default:
		}
	})
	return p
}

func (p *pairingNode) until(t *testing.T, what string, ok func(PairState) bool) PairState {
	t.Helper()
	limit := time.After(20 * time.Second)
	for {
		s := p.State()
		if ok(s) {
			return s
		}
		select {
		case <-p.signal:
		case <-limit:
			require.FailNow(t, what, "%+v", s)
		}
	}
}

func inPhase(want PairPhase) func(PairState) bool {
	return func(s PairState) bool { return s.Phase == want }
}

func (p *pairingNode) id() string { return string(p.node.Self().ID) }

func (p *pairingNode) meets(t *testing.T, other *pairingNode) {
	t.Helper()
	p.until(t, "they find each other", func(PairState) bool {
		for _, q := range p.node.Peers() {
			if string(q.ID) == other.id() && q.State == node.PeerUnpaired {
				return true
			}
		}
		return false
	})
}

// Two people at two windows, on real nodes.
func TestPairingOfTwo(t *testing.T) {
	a, b := newPairingNode(t, "Pair A"), newPairingNode(t, "Pair B")
	a.meets(t, b)
	a.Begin(b.id(), "Pair B")
	a.Begin(b.id(), "Pair B") // twice is once
	here := a.until(t, "digits", inPhase(Comparing))
	there := b.until(t, "digits there", inPhase(Comparing))
	require.Equal(t, here.Digits, there.Digits)
	require.True(t, there.Incoming)
	a.Confirm()
	a.Confirm()
	require.Equal(t, Waiting, a.State().Phase)
	b.until(t, "one sees the other's word", func(s PairState) bool { return s.Theirs })
	b.Confirm()
	a.until(t, "paired", inPhase(Paired))
	b.until(t, "paired there", inPhase(Paired))
	require.Equal(t, b.id(), <-a.told)
	require.Empty(t, b.told, "it did not begin")
	b.Refuse()
	require.Equal(t, NoPairing, b.State().Phase)
	friends := a.Friends()
	require.Len(t, friends, 1)
	require.Equal(t, "ask", friends[0].Consent)
	a.SetConsent(b.id(), "never")
	a.until(t, "the policy is kept", func(PairState) bool { return a.Friends()[0].Consent == "never" })
	a.SetConsent(b.id(), "sometimes")
	a.until(t, "what is none is said", func(PairState) bool { return a.Err() != nil })
	a.Remove(b.id())
	a.until(t, "removed", func(PairState) bool { return len(a.Friends()) == 0 && a.Err() == nil })
}

func TestPairingRefusedByOne(t *testing.T) {
	a, b := newPairingNode(t, "Refuse A"), newPairingNode(t, "Refuse B")
	a.meets(t, b)
	a.Begin(b.id(), "Refuse B")
	a.until(t, "digits", inPhase(Comparing))
	b.until(t, "digits there", inPhase(Comparing))
	b.Refuse()
	require.Equal(t, NoPairing, b.State().Phase)
	require.ErrorIs(t, a.until(t, "refused", inPhase(NotPaired)).Err, pairing.ErrPeerRefused)
	a.Begin(b.id(), "Refuse B")
	var locked *pairing.LockedError
	require.ErrorAs(t, a.until(t, "slowed down", func(s PairState) bool { return s.Phase == NotPaired && s.Digits == "" }).Err, &locked)
	require.Empty(t, a.Friends())
}

// Closing the app is a no.
func TestPairingAtTheEnd(t *testing.T) {
	a, b := newPairingNode(t, "End A"), newPairingNode(t, "End B")
	a.meets(t, b)
	a.Begin(b.id(), "End B")
	a.until(t, "digits", inPhase(Comparing))
	b.until(t, "digits there", inPhase(Comparing))
	a.Close()
	require.ErrorIs(t, b.until(t, "refused", inPhase(NotPaired)).Err, pairing.ErrPeerRefused)
	a.Begin(b.id(), "End B") // nothing begins any more
	require.Equal(t, NoPairing, a.State().Phase)
}
