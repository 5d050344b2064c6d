package session

import (
	"cmp"
	"context"

	"daisy/node"
	"daisy/node/pairing"
	"daisy/node/trust"
)

// PairerOf shows a running node to a Pairings. The node stays the caller's.
func PairerOf(n *node.Node) Pairer { return realPairer{n} }

type realPairer struct{ node *node.Node }

func (r realPairer) Pair(ctx context.Context, id string) (Attempt, error) {
	a, err := r.node.Pair(ctx, node.ID(id))
	if err != nil {
		return nil, err
	}
	return realAttempt{a}, nil
}

func (r realPairer) Pairing() Attempt {
	if a := r.node.Pairing(); a != nil {
		return realAttempt{a}
	}
	return nil
}

func (r realPairer) Friends() []Friend {
	var list []Friend
	for _, e := range r.node.Trusted() {
		list = append(list, Friend{ID: string(e.ID), Name: cmp.Or(e.Name, e.ID.Short()), Since: e.Since, Consent: string(e.Consent)})
	}
	return list
}

func (r realPairer) Forget(id string) error { return r.node.Forget(node.ID(id)) }

func (r realPairer) SetConsent(id, consent string) error {
	return r.node.SetConsent(node.ID(id), trust.Consent(consent))
}

func (r realPairer) Watch(changed func()) (cancel func()) {
	return r.node.Subscribe(func(e node.Event) {
		switch e.(type) {
		case node.PairingChanged, node.PeersChanged:
			changed()
		}
	})
}

type realAttempt struct{ *pairing.Attempt }

func (a realAttempt) ID() string     { return string(a.Attempt.Peer) }
func (a realAttempt) Name() string   { return a.Attempt.PeerName }
func (a realAttempt) Digits() string { return a.Attempt.Digits }
func (a realAttempt) Incoming() bool { return a.Attempt.Incoming }
