package pairing

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"daisy/node/identity"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// wire is a Channel over a connection, and keeps what was sent.
type wire struct {
	net.Conn
	reader *bufio.Reader

	mu   sync.Mutex // guards sent
	sent []string
}

func over(c net.Conn) *wire { return &wire{Conn: c, reader: bufio.NewReader(c)} }

func (w *wire) Send(line []byte) error {
	w.mu.Lock()
	w.sent = append(w.sent, string(line))
	w.mu.Unlock()
	_, err := w.Write(append(line[:len(line):len(line)], '\n'))
	return err
}

func (w *wire) Receive() ([]byte, error) { return w.reader.ReadBytes('\n') }
func (w *wire) Abort()                   { w.Close() }

func newKey(t testing.TB) ed25519.PublicKey {
	t.Helper()
	key, _, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	return key
}

// agreed is what Agree returns.
type agreed struct {
	*Attempt
	shown bool
	err   error
}

// side runs Agree and then Run in the background.
type side struct {
	Side
	ch    Channel
	agree chan agreed
	end   chan error
}

func begin(ctx context.Context, ch Channel, s Side) *side {
	return beginKeeping(ctx, ch, s, func() error { return nil })
}

func beginKeeping(ctx context.Context, ch Channel, s Side, keep func() error) *side {
	x := &side{Side: s, ch: ch, agree: make(chan agreed, 1), end: make(chan error, 1)}
	go func() { // ends with Run, for which each test waits
		a, shown, err := Agree(ctx, ch, s)
		x.agree <- agreed{a, shown, err}
		if err != nil {
			x.end <- err
			return
		}
		x.end <- a.Run(ctx, keep, func(error) {})
	}()
	return x
}

func (x *side) attempt(t *testing.T) *Attempt {
	t.Helper()
	a := <-x.agree
	require.NoError(t, a.err)
	require.True(t, a.shown)
	return a.Attempt
}

// pair begins one between two honest sides.
func pair(t *testing.T) (a, b *side) {
	t.Helper()
	nothing := func() error { return nil }
	return pairKeeping(t.Context(), t, nothing, nothing)
}

func pairKeeping(ctx context.Context, t *testing.T, keepA, keepB func() error) (a, b *side) {
	c, d := net.Pipe()
	keyA, keyB := newKey(t), newKey(t)
	a = beginKeeping(ctx, over(c), Side{Key: keyA, Name: "Study", PeerKey: keyB}, keepA)
	b = beginKeeping(ctx, over(d), Side{Key: keyB, Name: "Kitchen", PeerKey: keyA, Incoming: true}, keepB)
	return a, b
}

func TestBothConfirm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, firstIsA := range []bool{true, false} {
			kept := make(chan string, 2)
			keep := func() error { kept <- "kept"; return nil }
			a, b := pairKeeping(t.Context(), t, keep, keep)
			at, bt := a.attempt(t), b.attempt(t)
			assert.Regexp(t, "^[0-9]{6}$", at.Digits)
			assert.Equal(t, at.Digits, bt.Digits)
			assert.Equal(t, identity.IDOf(b.Key), at.Peer)
			assert.Equal(t, "Kitchen", at.PeerName)
			assert.Equal(t, identity.IDOf(a.Key), bt.Peer)
			assert.Equal(t, "Study", bt.PeerName)
			assert.True(t, bt.Incoming)
			assert.False(t, at.Incoming)

			first, second := at, bt
			if !firstIsA {
				first, second = bt, at
			}
			changed := make(chan struct{}, 10)
			second.Watch(func() { changed <- struct{}{} })
			first.Confirm()
			synctest.Wait()
			here, there := second.Confirmed()
			assert.False(t, here)
			assert.True(t, there, "one sees that the other has confirmed")
			assert.NotEmpty(t, changed)
			assert.Empty(t, kept, "one confirmation is not enough")
			require.NoError(t, second.Enter(second.Digits))
			second.Refuse() // too late, and not heard
			require.NoError(t, <-a.end)
			require.NoError(t, <-b.end)
			assert.Len(t, kept, 2)
			<-at.Done()
			require.NoError(t, at.Err())
		}
	})
}

func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, other := range []bool{false, true} { // the other side confirmed before
			keep := func() error { return errors.New("kept") }
			a, b := pairKeeping(t.Context(), t, keep, keep)
			at, bt := a.attempt(t), b.attempt(t)
			if other {
				bt.Confirm()
				synctest.Wait()
			}
			at.Refuse()
			at.Confirm() // the first word counts
			require.ErrorIs(t, <-a.end, ErrRefused)
			require.ErrorIs(t, <-b.end, ErrPeerRefused)
			require.ErrorIs(t, bt.Err(), ErrPeerRefused)
		}
		a, b := pair(t)
		at := a.attempt(t)
		require.ErrorIs(t, at.Enter("12345"), ErrDigits)
		require.ErrorIs(t, <-a.end, ErrRefused)
		require.ErrorIs(t, <-b.end, ErrPeerRefused)
	})
}

func TestExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := pair(t)
		at := a.attempt(t)
		begun := time.Now()
		at.Confirm()
		require.ErrorIs(t, <-a.end, ErrExpired)
		require.ErrorIs(t, <-b.end, ErrExpired)
		assert.Equal(t, Expiry, time.Since(begun).Truncate(time.Second))
		b.attempt(t).Confirm() // of no use
		require.ErrorIs(t, at.Err(), ErrExpired)
	})
}

func TestClosedInTheMiddle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		a, b := pairKeeping(ctx, t, nil, nil)
		a.attempt(t)
		b.attempt(t)
		cancel()
		require.ErrorIs(t, <-a.end, ErrClosed)
		require.ErrorIs(t, <-b.end, ErrClosed)

		a, b = pair(t)
		a.attempt(t)
		a.ch.Abort()
		require.ErrorIs(t, <-a.end, ErrBroken)
		require.ErrorIs(t, <-b.end, ErrBroken)
	})
}

// A side that cannot keep the trust says why.
func TestKeepFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := errors.New("the disk is full")
		a, b := pairKeeping(t.Context(), t, func() error { return full }, func() error { return nil })
		a.attempt(t).Confirm()
		b.attempt(t).Confirm()
		require.ErrorIs(t, <-a.end, full)
		require.NoError(t, <-b.end) // it learns by the next greeting
	})
}

// A side that says nothing does not hold the other for long.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, incoming := range []bool{true, false} {
			c, d := net.Pipe()
			x := begin(t.Context(), over(c), Side{Key: newKey(t), Name: "Study", PeerKey: newKey(t), Incoming: incoming})
			begun := time.Now()
			drained := make(chan struct{})
			go func() { // ends with the other side
				defer close(drained)
				_, _ = io.Copy(io.Discard, d)
			}()
			got := <-x.agree
			require.ErrorIs(t, got.err, ErrBroken)
			require.ErrorIs(t, got.err, errSlow)
			assert.False(t, got.shown)
			assert.Equal(t, agreeTimeout, time.Since(begun))
			<-x.end
			<-drained
		}
	})
}

// What comes out of turn, and what is sent back, ends the attempt.
func TestOutOfTurn(t *testing.T) {
	key, peer := newKey(t), newKey(t)
	some := hash{1}
	for name, c := range map[string]struct {
		incoming bool
		first    message
		want     error
	}{
		"confirmed before the digits": {true, message{Confirm: &confirm{}}, errTurn},
		"revealed before committing":  {true, message{Reveal: &reveal{some}}, errTurn},
		"the same, by the responder":  {false, message{Reveal: &reveal{some}}, errTurn},
		"refused at once":             {false, message{End: &end{endRefused}}, ErrPeerRefused},
		"busy":                        {false, message{End: &end{endBusy}}, ErrPeerBusy},
		"locked":                      {false, message{End: &end{endLocked}}, ErrPeerLocked},
	} {
		t.Run(name, func(t *testing.T) {
			c1, c2 := net.Pipe()
			x := begin(t.Context(), over(c1), Side{Key: key, Name: "Study", PeerKey: peer, Incoming: c.incoming})
			w := over(c2)
			if !c.incoming {
				_, err := w.Receive()
				require.NoError(t, err)
			}
			require.NoError(t, send(w, c.first))
			got := <-x.agree
			require.ErrorIs(t, got.err, c.want)
			assert.False(t, got.shown)
			<-x.end
		})
	}
}

// Two confirmations are one too many.
func TestConfirmedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, d := net.Pipe()
		keyA, keyB := newKey(t), newKey(t)
		a := begin(t.Context(), over(c), Side{Key: keyA, Name: "Study", PeerKey: keyB})
		w := over(d)
		attempt, shown, err := agree(w, Side{Key: keyB, Name: "Kitchen", PeerKey: keyA, Incoming: true})
		require.NoError(t, err)
		require.True(t, shown)
		require.Equal(t, a.attempt(t).Digits, attempt.Digits)
		require.NoError(t, send(w, message{Confirm: &confirm{}}))
		require.NoError(t, send(w, message{Confirm: &confirm{}}))
		_, err = receive(w)
		require.ErrorIs(t, err, ErrClosed)
		w.Close()
		require.ErrorIs(t, <-a.end, errTurn)
	})
}
