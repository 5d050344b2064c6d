//go:build !headless

package ui

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"fyne.io/fyne/v2/test"
	"github.com/stretchr/testify/require"

	"daisy/app/session"
	"daisy/node"
	"daisy/node/pairing"
)

// stillPairer pairs without a network.
type stillPairer struct {
	mu      sync.Mutex // guards the fields below
	attempt *stillAttempt
	friends []session.Friend
	changed func()
	err     error // of Pair and Forget
}

func (p *stillPairer) Pair(_ context.Context, id string) (session.Attempt, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return nil, p.err
	}
	p.attempt = newStillAttempt(id, false)
	return p.attempt, nil
}

func (p *stillPairer) Pairing() session.Attempt {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.attempt == nil {
		return nil
	}
	return p.attempt
}

func (p *stillPairer) Friends() []session.Friend {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]session.Friend(nil), p.friends...)
}

func (p *stillPairer) edit(change func()) {
	p.mu.Lock()
	change()
	p.mu.Unlock()
	p.changed()
}

func (p *stillPairer) Forget(id string) error {
	if p.err == nil {
		p.edit(func() { p.friends = nil })
	}
	return p.err
}

func (p *stillPairer) SetConsent(_, consent string) error {
	p.edit(func() { p.friends[0].Consent = consent })
	return nil
}

func (p *stillPairer) Watch(changed func()) func() {
	p.changed = changed
	return func() {}
}

type stillAttempt struct {
	id       string
	incoming bool
	done     chan struct{}

	mu          sync.Mutex // guards the fields below
	here, there bool
	err         error
}

func newStillAttempt(id string, incoming bool) *stillAttempt {
	return &stillAttempt{id: id, incoming: incoming, done: make(chan struct{})}
}

func (a *stillAttempt) ID() string     { return a.id }
func (a *stillAttempt) Name() string   { return "Kitchen" }
func (a *stillAttempt) Digits() string { return "012345" }
func (a *stillAttempt) Incoming() bool { return a.incoming }
func (a *stillAttempt) Confirm()       { a.set(&a.here) }
func (a *stillAttempt) Refuse()        { a.end(pairing.ErrRefused) }

func (a *stillAttempt) set(flag *bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	*flag = true
}

func (a *stillAttempt) end(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err = err
	close(a.done)
}

func (a *stillAttempt) Confirmed() (here, there bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.here, a.there
}

func (a *stillAttempt) Done() <-chan struct{} { return a.done }

func (a *stillAttempt) Err() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// incoming lets another Mac begin.
func (d *testDesk) incoming(t *testing.T) *stillAttempt {
	t.Helper()
	a := newStillAttempt("b", true)
	d.pairs.edit(func() { d.pairs.attempt = a })
	d.until(t, func() bool { return d.pairing.digits != nil })
	return a
}

// A tick on a Mac that is not paired opens the pairing, and is set when the two
// are paired.
func TestTickPairsFirst(t *testing.T) {
	d := newTestDesk(t)
	d.showCluster()
	c := d.cluster
	d.node.set(session.Peer{ID: "a", Name: "Kitchen", State: string(node.PeerUnpaired)})
	d.until(t, func() bool { return len(c.peers.order) == 1 })
	check := c.peers.rows["a"].check
	require.False(t, check.Disabled())
	require.Equal(t, "not paired: tick it to compare six digits", c.peers.rows["a"].reason.Text)
	test.Tap(check)
	require.False(t, check.Checked)
	d.until(t, func() bool { return d.pairing.digits != nil })
	require.Equal(t, "012 345", d.pairing.digits.Text)
	test.Tap(d.pairing.yes)
	require.Nil(t, d.pairing.yes, "the other side is waited for")
	here, _ := d.pairs.attempt.Confirmed()
	require.True(t, here)
	d.pairs.attempt.end(nil)
	d.until(t, func() bool { return d.pairing.yes != nil && d.pairing.digits == nil })
	d.node.set(session.Peer{ID: "a", Name: "Kitchen", State: string(node.PeerReady), Ready: true})
	d.until(t, func() bool { return check.Checked })
	test.Tap(d.pairing.yes)
	require.Nil(t, d.pairing.win)
}

func TestPairingRefusedHere(t *testing.T) {
	d := newTestDesk(t)
	a := d.incoming(t)
	test.Tap(d.pairing.no)
	require.Nil(t, d.pairing.win, "who refuses needs no word about it")
	<-a.done
	require.ErrorIs(t, a.Err(), pairing.ErrRefused)

	// Closing the window is a no.
	d = newTestDesk(t)
	a = d.incoming(t)
	d.pairing.refuse()
	<-a.done
	require.ErrorIs(t, a.Err(), pairing.ErrRefused)
}

// Each way a pairing can fail is said in a sentence of its own.
func TestPairingFails(t *testing.T) {
	seen := map[string]bool{}
	d := newTestDesk(t)
	for _, err := range []error{
		pairing.ErrPeerRefused, pairing.ErrExpired, pairing.ErrMismatch, pairing.ErrPeerBusy, pairing.ErrPeerLocked, pairing.ErrBroken,
		pairing.ErrVersion, pairing.ErrBusy, &pairing.LockedError{Until: time.Now()}, errors.New("the disk is full"),
	} {
		a := d.incoming(t)
		a.end(err)
		d.until(t, func() bool { return d.pairing.digits == nil && d.pairing.no != nil })
		require.False(t, seen[d.pairing.err], d.pairing.err)
		seen[d.pairing.err] = true
		test.Tap(d.pairing.no)
		require.Nil(t, d.pairing.win)
	}
	require.True(t, seen["It was not confirmed on both Macs within two minutes."])

	d.pairs.err = &pairing.LockedError{Until: time.Date(2026, 12, 1, 14, 30, 5, 0, time.Local)}
	d.cfg.Pairings.Begin("b", "Kitchen")
	d.until(t, func() bool { return d.pairing.no != nil && d.pairing.err != "" })
	require.Contains(t, d.pairing.err, "14:30:05")
}

// A name that is known already with another key is warned of.
func TestPairingSameName(t *testing.T) {
	d := newTestDesk(t)
	d.pairs.edit(func() { d.pairs.friends = []session.Friend{{ID: "other", Name: "Kitchen", Consent: "ask"}} })
	d.incoming(t)
	require.True(t, d.pairing.shown.SameName)
}

func TestFriends(t *testing.T) {
	d := newTestDesk(t)
	d.showCluster()
	l := d.cluster.friends
	require.False(t, l.box.Visible())
	d.pairs.edit(func() {
		d.pairs.friends = []session.Friend{{ID: "a", Name: "Kitchen", Since: time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC), Consent: "ask"}}
	})
	d.until(t, func() bool { return l.box.Visible() && l.remove["a"] != nil })
	require.Equal(t, "Ask me", l.policy["a"].Selected)
	l.policy["a"].SetSelectedIndex(1)
	d.until(t, func() bool { return l.policy["a"].Selected == "Always join" && l.shown[0].Consent == "always" })

	test.Tap(l.remove["a"])
	l.ask.Dismiss()
	require.Len(t, d.cfg.Pairings.Friends(), 1, "after a question")
	d.pairs.err = errors.New("the disk is full")
	d.cfg.Pairings.Remove("a")
	d.until(t, func() bool { return l.err.box.Visible() })
	d.pairs.err = nil
	d.cfg.Pairings.Remove("a")
	d.until(t, func() bool { return !l.box.Visible() })
}
