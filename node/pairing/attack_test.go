package pairing

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"daisy/node/identity"
)

func newIdentity(t *testing.T) *identity.Identity {
	t.Helper()
	i, err := identity.Load(t.TempDir())
	require.NoError(t, err)
	return i
}

// secure is a real TLS connection between two nodes.
func secure(t *testing.T, dialler, answerer *identity.Identity) (dialled, answered *tls.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	raw := make(chan net.Conn, 1)
	go func() { // ends with the dialling below
		c, err := l.Accept()
		assert.NoError(t, err)
		raw <- c
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	dialled = tls.Client(c, dialler.ClientConfig(answerer.ID(), "h2"))
	answered = tls.Server(<-raw, answerer.ServerConfig("h2"))
	t.Cleanup(func() {
		dialled.Close()
		answered.Close()
	})
	shaken := make(chan error, 1)
	go func() { shaken <- answered.Handshake() }()
	require.NoError(t, dialled.Handshake())
	require.NoError(t, <-shaken)
	return dialled, answered
}

// sideOf is a side as node makes it: the peer's key is the one TLS proved.
func sideOf(t *testing.T, own *identity.Identity, name string, c *tls.Conn, incoming bool) Side {
	t.Helper()
	key, err := identity.PeerKey(c.ConnectionState())
	require.NoError(t, err)
	return Side{Key: own.PublicKey(), Name: name, PeerKey: key, Incoming: incoming}
}

// A man in the middle pairs with both under the names of each other, over real
// TLS. He cannot be on both connections with their keys, and so the two screens
// differ.
func TestManInTheMiddle(t *testing.T) {
	alice, bob := newIdentity(t), newIdentity(t)
	for range 5 {
		mallory, mallet := newIdentity(t), newIdentity(t) // two keys of one man
		fromAlice, toMallory := secure(t, alice, mallory)
		fromMallet, toBob := secure(t, mallet, bob)

		a := begin(t.Context(), over(fromAlice), sideOf(t, alice, "Study", fromAlice, false))
		m := begin(t.Context(), over(toMallory), sideOf(t, mallory, "Kitchen", toMallory, true))
		n := begin(t.Context(), over(fromMallet), sideOf(t, mallet, "Study", fromMallet, false))
		b := begin(t.Context(), over(toBob), sideOf(t, bob, "Kitchen", toBob, true))
		at, mt, nt, bt := a.attempt(t), m.attempt(t), n.attempt(t), b.attempt(t)
		require.Equal(t, at.Digits, mt.Digits)
		require.Equal(t, nt.Digits, bt.Digits)
		assert.Equal(t, "Kitchen", at.PeerName, "the names are as the victims expect")
		assert.Equal(t, "Study", bt.PeerName)
		assert.NotEqual(t, at.Digits, bt.Digits, "one in a million")

		mt.Confirm() // he does
		nt.Confirm()
		at.Refuse() // the people see that the digits differ
		bt.Refuse()
		require.ErrorIs(t, <-a.end, ErrRefused)
		require.ErrorIs(t, <-b.end, ErrRefused)
		require.ErrorIs(t, <-m.end, ErrPeerRefused)
		require.ErrorIs(t, <-n.end, ErrPeerRefused)
	}
}

// Passing each message on as it is does not help him either: what it commits to
// names the keys.
func TestManWhoPassesOn(t *testing.T) {
	alice, bob, mallory := newIdentity(t), newIdentity(t), newIdentity(t)
	fromAlice, toMallory := secure(t, alice, mallory)
	fromMallory, toBob := secure(t, mallory, bob)
	a := begin(t.Context(), over(fromAlice), sideOf(t, alice, "Study", fromAlice, false))
	b := begin(t.Context(), over(toBob), sideOf(t, bob, "Kitchen", toBob, true))
	left, right := over(toMallory), over(fromMallory)
	for _, way := range [][2]*wire{{left, right}, {right, left}, {left, right}} { // offer, offer, reveal
		line, err := way[0].Receive()
		require.NoError(t, err)
		require.NoError(t, way[1].Send(line[:len(line)-1]))
	}
	got := <-b.agree
	require.ErrorIs(t, got.err, ErrMismatch)
	assert.True(t, got.shown, "it counts as a failure")
	require.ErrorIs(t, <-b.end, ErrMismatch)
	line, err := right.Receive()
	require.NoError(t, err)
	require.NoError(t, left.Send(line[:len(line)-1])) // the end
	require.ErrorIs(t, (<-a.agree).err, ErrMismatch)
	<-a.end
}

// Whoever chooses his nonce after he has seen the other's could choose the
// digits, and is found out.
func TestGrinding(t *testing.T) {
	key, victim := newKey(t), newKey(t)
	c, d := net.Pipe()
	a := begin(t.Context(), over(c), Side{Key: victim, Name: "Study", PeerKey: key})
	w := over(d)
	m, err := receive(w)
	require.NoError(t, err)
	first := party{key: victim, name: m.Offer.Name, commitment: m.Offer.Commitment}
	second := party{key: key, name: "Kitchen", nonce: hash{7}}
	second.commitment = commit(responder, key, victim, second.name, second.nonce)
	require.NoError(t, send(w, message{Offer: &offer{second.name, second.commitment}}))
	m, err = receive(w)
	require.NoError(t, err)
	first.nonce = m.Reveal.Nonce
	for digits(first, second)[:2] != "42" { // as far as one wants
		_, err := rand.Read(second.nonce[:])
		require.NoError(t, err)
	}
	require.NoError(t, send(w, message{Reveal: &reveal{second.nonce}}))
	_, err = receive(w)
	require.ErrorIs(t, err, ErrMismatch)
	got := <-a.agree
	require.ErrorIs(t, got.err, ErrMismatch)
	assert.True(t, got.shown)
	<-a.end
}

// What one attempt said is worth nothing in the next.
func TestReplay(t *testing.T) {
	keyA, keyB := newKey(t), newKey(t)
	record := func(ch *wire, peer *wire) {
		b := begin(t.Context(), peer, Side{Key: keyB, Name: "Kitchen", PeerKey: keyA, Incoming: true})
		a := begin(t.Context(), ch, Side{Key: keyA, Name: "Study", PeerKey: keyB})
		a.attempt(t).Confirm()
		b.attempt(t).Confirm()
		require.NoError(t, <-a.end)
		require.NoError(t, <-b.end)
	}
	c, d := net.Pipe()
	recorded, other := over(c), over(d)
	record(recorded, other)

	// The initiator's messages again: the digits are new, and nobody here has
	// confirmed them.
	c, d = net.Pipe()
	b := begin(t.Context(), over(d), Side{Key: keyB, Name: "Kitchen", PeerKey: keyA, Incoming: true})
	w := over(c)
	for i, line := range recorded.sent[:2] { // offer, reveal
		require.NoError(t, w.Send([]byte(line)))
		if i == 0 {
			_, err := w.Receive()
			require.NoError(t, err)
		}
	}
	_, err := w.Receive()
	require.NoError(t, err)
	again := b.attempt(t)
	old, err := decode([]byte(other.sent[1]))
	require.NoError(t, err)
	require.NotNil(t, old.Reveal)
	assert.NotEqual(t, digitsOf(t, keyA, keyB, recorded, other), again.Digits)
	again.Refuse()
	_, err = w.Receive()
	require.NoError(t, err)
	require.ErrorIs(t, <-b.end, ErrRefused)

	// The responder's messages again: the initiator notices nothing but other
	// digits; the recorded confirmation is only the other side's.
	c, d = net.Pipe()
	a := begin(t.Context(), over(c), Side{Key: keyA, Name: "Study", PeerKey: keyB})
	w = over(d)
	for _, line := range other.sent[:2] {
		_, err := w.Receive()
		require.NoError(t, err)
		require.NoError(t, w.Send([]byte(line)))
	}
	at := a.attempt(t)
	assert.NotEqual(t, digitsOf(t, keyA, keyB, recorded, other), at.Digits)
	at.Refuse()
	_, err = w.Receive()
	require.NoError(t, err)
	w.Close()
	require.ErrorIs(t, <-a.end, ErrRefused)
}

// digitsOf computes the digits of a recorded attempt.
func digitsOf(t *testing.T, keyA, keyB []byte, first, second *wire) string {
	t.Helper()
	read := func(key []byte, w *wire) (p party) {
		o, err := decode([]byte(w.sent[0]))
		require.NoError(t, err)
		r, err := decode([]byte(w.sent[1]))
		require.NoError(t, err)
		return party{key, o.Offer.Name, o.Offer.Commitment, r.Reveal.Nonce}
	}
	return digits(read(keyA, first), read(keyB, second))
}

// A mirror is no other node.
func TestReflection(t *testing.T) {
	key := newKey(t)
	c, d := net.Pipe()
	defer d.Close()
	_, _, err := Agree(context.Background(), over(c), Side{Key: key, Name: "Study", PeerKey: key})
	require.ErrorIs(t, err, ErrReflected)

	c, d = net.Pipe()
	a := begin(t.Context(), over(c), Side{Key: key, Name: "Study", PeerKey: newKey(t)})
	w := over(d)
	line, err := w.Receive()
	require.NoError(t, err)
	require.NoError(t, w.Send(line[:len(line)-1]))
	require.ErrorIs(t, (<-a.agree).err, ErrReflected)
	<-a.end
	// And as the roles are hashed, a reveal cannot serve for the other role.
	own, peer, nonce := newKey(t), newKey(t), hash{1}
	assert.NotEqual(t, commit(initiator, own, peer, "x", nonce), commit(responder, own, peer, "x", nonce))
}
