package node

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"daisy/node/control"
	"daisy/node/pairing"
	"daisy/node/trust"
)

// met waits until a sees b in that state.
func met(t *testing.T, a, b *Node, want PeerState) {
	t.Helper()
	until(t, a, b.Self().Name+" is "+string(want), func() bool { return state(a, b.Self().ID) == want })
}

// attempts begins a pairing from a and returns both sides' attempts.
func attempts(t *testing.T, a, b *Node) (here, there *pairing.Attempt) {
	t.Helper()
	here, err := a.Pair(t.Context(), b.Self().ID)
	require.NoError(t, err)
	until(t, b, "the digits are there", func() bool { return b.Pairing() != nil })
	return here, b.Pairing()
}

// over waits for the end of an attempt.
func over(t *testing.T, a *pairing.Attempt) error {
	t.Helper()
	closed(t, "the pairing is over", a.Done())
	return a.Err()
}

func TestPairing(t *testing.T) {
	path := writeModel(t, 1)
	dir := t.TempDir()
	a, err := Start(t.Context(), testConfig(t, dir, "a", yes, path))
	require.NoError(t, err)
	t.Cleanup(func() { a.Close() })
	b := startNode(t, "b", yes, path)
	met(t, a, b, PeerUnpaired)
	met(t, b, a, PeerUnpaired)

	here, there := attempts(t, a, b)
	assert.Equal(t, here.Digits, there.Digits)
	assert.Equal(t, "b", here.PeerName)
	assert.Equal(t, a.Self().ID, there.Peer)
	same, err := b.Pair(t.Context(), a.Self().ID)
	require.NoError(t, err)
	assert.Same(t, there, same, "who begins on the other side finds the attempt")
	here.Confirm()
	require.NoError(t, there.Enter(here.Digits))
	require.NoError(t, over(t, here))
	require.NoError(t, over(t, there))
	met(t, a, b, PeerReady)
	met(t, b, a, PeerReady)
	assert.Nil(t, a.Pairing())

	list := b.Trusted()
	require.Len(t, list, 1)
	assert.Equal(t, "a", list[0].Name)
	assert.Equal(t, trust.Ask, list[0].Consent)
	c, err := a.Join(t.Context(), []ID{b.Self().ID}, modelOf(t, a), fast)
	require.NoError(t, err)
	ask(t, c, 4)
	require.NoError(t, c.Close())

	// It lasts.
	require.NoError(t, a.Close())
	a, err = Start(t.Context(), testConfig(t, dir, "a", yes, path))
	require.NoError(t, err)
	met(t, a, b, PeerReady)

	// Until one withdraws it.
	require.NoError(t, b.Forget(a.Self().ID))
	require.ErrorIs(t, b.Forget(a.Self().ID), trust.ErrUnknown)
	met(t, b, a, PeerUnpaired)
	met(t, a, b, PeerRefused)
	assert.Contains(t, find(a, "b").Reason, "pair them again")
	_, err = a.Join(t.Context(), []ID{b.Self().ID}, modelOf(t, a), fast)
	require.ErrorIs(t, err, ErrRefused)
	assert.ErrorContains(t, err, "the two nodes are not paired")
	assert.True(t, free(a))
	here, there = attempts(t, a, b)
	here.Confirm()
	there.Confirm()
	require.NoError(t, over(t, there))
	met(t, a, b, PeerReady)
	require.NoError(t, a.Close())
}

func TestPairingRefused(t *testing.T) {
	a, b, c := startNode(t, "a", nil), startNode(t, "b", nil), startNode(t, "c", nil)
	met(t, a, b, PeerUnpaired)
	met(t, c, b, PeerUnpaired)
	met(t, c, a, PeerUnpaired)
	here, there := attempts(t, a, b)

	_, err := c.Pair(t.Context(), b.Self().ID)
	require.ErrorIs(t, err, pairing.ErrPeerBusy, "one at a time")
	_, err = b.Pair(t.Context(), c.Self().ID)
	require.Error(t, err)
	there.Refuse()
	require.ErrorIs(t, over(t, here), pairing.ErrPeerRefused)
	require.ErrorIs(t, over(t, there), pairing.ErrRefused)
	assert.Empty(t, a.Trusted())
	assert.Empty(t, b.Trusted())

	_, err = a.Pair(t.Context(), b.Self().ID)
	var locked *pairing.LockedError
	require.ErrorAs(t, err, &locked, "failures slow down")
	_, err = c.Pair(t.Context(), b.Self().ID)
	require.ErrorIs(t, err, pairing.ErrPeerLocked, "whoever asks")
	_, err = a.Pair(t.Context(), fakeID(1))
	require.ErrorIs(t, err, ErrUnknownPeer)
}

// A pairing ends with the node, on both sides.
func TestCloseWhilePairing(t *testing.T) {
	for _, initiator := range []bool{true, false} {
		a, b := startNode(t, "a", nil), startNode(t, "b", nil)
		met(t, a, b, PeerUnpaired)
		here, there := attempts(t, a, b)
		if initiator {
			require.NoError(t, a.Close())
		} else {
			require.NoError(t, b.Close())
		}
		for _, x := range []*pairing.Attempt{here, there} {
			err := over(t, x)
			assert.True(t, errors.Is(err, pairing.ErrClosed) || errors.Is(err, pairing.ErrBroken), "%v", err)
		}
	}
	a := startNode(t, "a", nil)
	require.NoError(t, a.Close())
	_, err := a.Pair(t.Context(), fakeID(1))
	require.Error(t, err)
}

// What a stranger can learn is a name.
func TestStrangersSeeTheNameAlone(t *testing.T) {
	a, b := startNode(t, "a", nil), startNode(t, "b", nil, writeModel(t, 1))
	met(t, a, b, PeerUnpaired)
	c, err := b.Join(t.Context(), nil, modelOf(t, b), fast)
	require.NoError(t, err)
	defer c.Close()
	hello, err := a.dialer.Hello(t.Context(), b.Self().ID)
	require.NoError(t, err)
	assert.Equal(t, control.Hello{Version: control.Protocol, ID: b.Self().ID, Name: "b"}, hello)
	_, err = a.dialer.Group(t.Context(), b.Self().ID)
	var refused *control.RefusedError
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, errStranger.Error(), refused.Reason)

	require.NoError(t, b.Trust(a.Self().ID))
	hello, err = a.dialer.Hello(t.Context(), b.Self().ID)
	require.NoError(t, err)
	assert.True(t, hello.Paired)
	assert.True(t, hello.Busy)
	assert.Positive(t, hello.MemoryBytes)
}

// Only who is trusted is invited.
func TestStrangersAreNotInvited(t *testing.T) {
	path := writeModel(t, 1)
	a, b := startNode(t, "a", yes, path), startNode(t, "b", yes, path)
	met(t, a, b, PeerUnpaired)
	_, err := a.Join(t.Context(), []ID{b.Self().ID}, modelOf(t, a), fast)
	require.ErrorIs(t, err, ErrNotPaired)
	assert.EqualError(t, err, "b is not paired with this node")
}

// TestFewPairings: members trust each other by the leader's word, for its
// epoch; outside it they stay strangers.
func TestFewPairings(t *testing.T) {
	path := writeModel(t, 1)
	leader := startNode(t, "leader", yes, path)
	others := []*Node{startNode(t, "b", yes, path), startNode(t, "c", yes, path)}
	cluster, err := leader.Join(t.Context(), meet(t, leader, others...), modelOf(t, leader), fast)
	require.NoError(t, err)
	ask(t, cluster, 4)
	for _, o := range others {
		assert.Len(t, o.Trusted(), 1)
	}
	met(t, others[0], others[1], PeerMember)
	require.NoError(t, cluster.Close())
	met(t, others[0], others[1], PeerUnpaired)
}

// Consent follows the leader's policy.
func TestConsentByLeader(t *testing.T) {
	path := writeModel(t, 1)
	asked := 0
	leader := startNode(t, "leader", nil, path)
	member := startNode(t, "member", func(context.Context, Invitation) bool { asked++; return false }, path)
	ids := meet(t, leader, member)
	join := func() error {
		c, err := leader.Join(t.Context(), ids, modelOf(t, leader), fast)
		if err == nil {
			require.NoError(t, c.Close())
		}
		return err
	}
	require.ErrorContains(t, join(), "its owner declined")
	require.NoError(t, member.SetConsent(leader.Self().ID, trust.Never))
	require.ErrorContains(t, join(), "declines all invitations of this leader")
	require.NoError(t, member.SetConsent(leader.Self().ID, trust.Always))
	require.NoError(t, join())
	assert.Equal(t, 1, asked)
	require.ErrorIs(t, member.SetConsent(fakeID(1), trust.Always), trust.ErrUnknown)
	require.ErrorIs(t, member.SetConsent(leader.Self().ID, "perhaps"), trust.ErrConsent)
}

// Who is forgotten while its invitation is being considered, or while its
// cluster runs, is out.
func TestForgetInTheMiddle(t *testing.T) {
	path := writeModel(t, 1)
	leader := startNode(t, "leader", yes, path)
	var member *Node
	member = startNode(t, "member", func(context.Context, Invitation) bool {
		return assert.NoError(t, member.Forget(leader.Self().ID))
	}, path)
	_, err := leader.Join(t.Context(), meet(t, leader, member), modelOf(t, leader), fast)
	require.ErrorIs(t, err, ErrRefused)
	assert.ErrorContains(t, err, "not paired")
	until(t, member, "the member is free", func() bool { return free(member) })

	willing := startNode(t, "willing", yes, path)
	c, err := leader.Join(t.Context(), meet(t, leader, willing), modelOf(t, leader), fast)
	require.NoError(t, err)
	until(t, willing, "the cluster is published", func() bool { return willing.Cluster() != nil })
	theirs := willing.Cluster()
	require.NoError(t, willing.Forget(leader.Self().ID))
	closed(t, "it is out", theirs.Done())
	until(t, leader, "the leader goes on alone", func() bool { return len(c.Members()) == 1 })
	require.NoError(t, c.Close())
}

// A damaged list of friends is not guessed at, and not overwritten.
func TestDamagedTrust(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, trust.File)
	require.NoError(t, os.WriteFile(file, []byte("{"), 0o600))
	_, err := Start(t.Context(), testConfig(t, dir, "a", nil))
	require.ErrorContains(t, err, "damaged")
	require.ErrorContains(t, err, file)
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, "{", string(data))
}

// Where Bonjour does not reach, an address does, also after a restart.
func TestPairingByAddress(t *testing.T) {
	dir := t.TempDir()
	start := func() *Node {
		a, err := Start(t.Context(), testConfig(t, dir, "a", nil))
		require.NoError(t, err)
		t.Cleanup(func() { a.Close() })
		a.finder.Close() // it hears of nobody
		return a
	}
	a, b := start(), startNode(t, "b", nil)
	_, err := a.Find(t.Context(), freePort(t))
	require.ErrorContains(t, err, "no Daisy listens")
	_, err = a.Find(t.Context(), a.Self().Addrs[0])
	require.ErrorContains(t, err, "itself")
	found, err := a.Find(t.Context(), b.Self().Addrs[0])
	require.NoError(t, err)
	assert.Equal(t, b.Self().ID, found.ID)
	assert.Equal(t, "b", found.Name)
	here, there := attempts(t, a, b)
	here.Confirm()
	there.Confirm()
	require.NoError(t, over(t, here))
	require.Equal(t, []netip.AddrPort{b.Self().Addrs[0]}, a.Trusted()[0].Addrs)
	require.NoError(t, a.Close())
	a = start()
	met(t, a, b, PeerReady)
}
