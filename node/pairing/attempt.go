package pairing

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"daisy/node/identity"
)

const (
	// Expiry is how long the two people have, from when the digits are there.
	Expiry = 2 * time.Minute
	// agreeTimeout bounds the messages before that; no person is in the way.
	agreeTimeout = 10 * time.Second
	// lingerTime is how long the initiator waits for the other side to have read
	// its last message.
	lingerTime = 2 * time.Second
)

// Channel carries one pairing's messages, over a connection on which both sides
// have proved their keys. Send and Receive block; Abort makes both fail, at
// least from then on, and may be called from any goroutine, more than once.
type Channel interface {
	Send(line []byte) error
	// Receive returns the next line, which is void at the next call; io.EOF at
	// the end.
	Receive() ([]byte, error)
	Abort()
}

// Side is who pairs with whom.
type Side struct {
	Key     ed25519.PublicKey // this node's
	Name    string            // what it calls itself
	PeerKey ed25519.PublicKey // that the other side has proved to hold
	// Incoming: the other side began.
	Incoming bool
}

// Attempt is one pairing whose digits are known.
type Attempt struct {
	// Peer is the other node, and PeerName what it calls itself. The name proves
	// nothing: only equal digits do.
	Peer     identity.ID
	PeerName string
	Incoming bool
	Digits   string    // six
	Expires  time.Time // when it is too late

	channel Channel
	decided chan bool // buffer of one: the person here has spoken
	once    sync.Once // guards decided
	done    chan struct{}

	mu        sync.Mutex // guards the fields below
	confirmed bool       // here
	theirs    bool       // confirmed there
	changed   func()
	err       error
}

// Agree exchanges commitments and nonces; afterwards both sides have the digits.
// It blocks for ten seconds at most, or until ctx ends. shown says whether this
// side has let the other learn the digits, also with an error: then the attempt
// counts as failed unless it ends with trust. After an error the channel is
// aborted.
func Agree(ctx context.Context, ch Channel, side Side) (a *Attempt, shown bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, agreeTimeout, errSlow)
	defer cancel()
	stop := context.AfterFunc(ctx, ch.Abort)
	defer func() {
		if !stop() && err == nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			if ctx.Err() != nil {
				err = fmt.Errorf("%w: %w", ErrBroken, context.Cause(ctx))
			}
			ch.Abort()
			a = nil
		}
	}()
	return agree(ch, side)
}

var errSlow = fmt.Errorf("it said nothing for %v", agreeTimeout)

func agree(ch Channel, side Side) (_ *Attempt, shown bool, err error) {
	if side.Key.Equal(side.PeerKey) {
		return nil, false, ErrReflected
	}
	role, peerRole := initiator, responder
	if side.Incoming {
		role, peerRole = responder, initiator
	}
	own, peer := party{key: side.Key, name: side.Name}, party{key: side.PeerKey}
	if _, err := rand.Read(own.nonce[:]); err != nil {
		return nil, false, err
	}
	own.commitment = commit(role, own.key, peer.key, own.name, own.nonce)
	sendOffer := func() error {
		return say(ch, message{Offer: &offer{Name: own.name, Commitment: own.commitment}})
	}
	sendReveal := func() error {
		shown = true
		return say(ch, message{Reveal: &reveal{Nonce: own.nonce}})
	}
	receiveOffer := func() error {
		m, err := receive(ch)
		switch {
		case err != nil:
			return err
		case m.Offer == nil:
			return errTurn
		case m.Offer.Commitment == own.commitment:
			return ErrReflected
		}
		peer.name, peer.commitment = m.Offer.Name, m.Offer.Commitment
		return nil
	}
	receiveReveal := func() error {
		m, err := receive(ch)
		switch {
		case err != nil:
			return err
		case m.Reveal == nil:
			return errTurn
		}
		peer.nonce = m.Reveal.Nonce
		if commit(peerRole, peer.key, own.key, peer.name, peer.nonce) != peer.commitment {
			_ = send(ch, message{End: &end{endMismatch}}) // whether heard or not, it is over
			return ErrMismatch
		}
		return nil
	}
	// Nobody reveals before both are committed.
	steps := []func() error{sendOffer, receiveOffer, sendReveal, receiveReveal}
	if side.Incoming {
		steps = []func() error{receiveOffer, sendOffer, receiveReveal, sendReveal}
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, shown || errors.Is(err, ErrMismatch), err
		}
	}
	first, second := own, peer
	if side.Incoming {
		first, second = peer, own
	}
	return &Attempt{
		Peer: identity.IDOf(side.PeerKey), PeerName: peer.name, Incoming: side.Incoming,
		Digits: digits(first, second), Expires: time.Now().Add(Expiry),
		channel: ch, decided: make(chan bool, 1), done: make(chan struct{}),
	}, shown, nil
}

var errTurn = errors.New("the other node sent a message out of turn")

func send(ch Channel, m message) error {
	line, err := m.encode()
	if err != nil {
		return err
	}
	if err := ch.Send(line); err != nil {
		return fmt.Errorf("%w: %w", ErrBroken, err)
	}
	return nil
}

// say is send, but when the other side hung up, its last word is the error.
func say(ch Channel, m message) error {
	err := send(ch, m)
	if err != nil {
		if _, last := receive(ch); last != nil && !errors.Is(last, ErrBroken) {
			return last
		}
	}
	return err
}

// receive returns the next message; an end is the error that it means.
func receive(ch Channel) (message, error) {
	line, err := ch.Receive()
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("it hung up")
		}
		return message{}, fmt.Errorf("%w: %w", ErrBroken, err)
	}
	m, err := decode(line)
	if err != nil {
		return message{}, err
	}
	if m.End != nil {
		return message{}, meanings[m.End.Kind]
	}
	return m, nil
}

// Turn refuses a pairing before it has begun, for the reason given.
func Turn(ch Channel, reason error) {
	kind := endClosed
	var locked *LockedError
	switch {
	case errors.Is(reason, ErrBusy):
		kind = endBusy
	case errors.As(reason, &locked):
		kind = endLocked
	}
	_ = send(ch, message{End: &end{kind}}) // whether heard or not, nothing follows
}
