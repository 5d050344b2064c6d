package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"daisy/node"
	"daisy/node/pairing"
	"daisy/node/trust"
)

// maxWithin bounds how long a node is looked for.
const maxWithin = time.Hour

// matches says whether people mean the node by what they typed.
func matches(id node.ID, name, typed string) bool {
	return typed == string(id) || strings.EqualFold(typed, name) || len(typed) >= 4 && strings.HasPrefix(string(id), typed)
}

// attempt begins the pairing that is asked for, or finds it begun.
func (s *Server) attempt(ctx context.Context, r request) (*pairing.Attempt, error) {
	ctx, cancel := context.WithTimeout(ctx, min(max(r.Within, 0), maxWithin)+time.Second)
	defer cancel()
	changed := make(chan struct{}, 1)
	defer s.node.Subscribe(func(node.Event) {
		select {
		case changed <- struct{}{}:
		default:
		}
	})()
	var byAddress node.ID // the node that answers at the address
	if isAddress(r.Node) {
		peer, err := s.findAt(ctx, r.Node)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.Node, err)
		}
		byAddress = peer.ID
	}
	for {
		if a := s.node.Pairing(); a != nil && a.Incoming && (r.Node == "" || a.Peer == byAddress || matches(a.Peer, a.PeerName, r.Node)) {
			return a, nil
		}
		id := byAddress
		if id == "" && r.Node != "" {
			var err error
			if id, err = one(s.node.Peers(), r.Node); err != nil {
				return nil, err
			}
		}
		if id != "" {
			// The digits take seconds; finding is over.
			pairCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
			defer cancel()
			defer context.AfterFunc(s.ctx, cancel)()
			a, err := s.node.Pair(pairCtx, id)
			other := s.node.Pairing()
			if !errors.Is(err, pairing.ErrBusy) || other != nil && other.Peer != id {
				return a, err
			}
			if other != nil {
				continue
			}
			// Somebody begins one at this moment; it may be the same node.
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if r.Node == "" {
				return nil, errors.New("nobody began a pairing")
			}
			return nil, fmt.Errorf("no node %s was found", r.Node)
		}
	}
}

// one is the peer that is meant; "" when there is none yet.
func one(peers []node.Peer, typed string) (node.ID, error) {
	var ids []node.ID
	for _, p := range peers {
		if matches(p.ID, p.Name, typed) {
			ids = append(ids, p.ID)
		}
	}
	if len(ids) > 1 {
		return "", fmt.Errorf("%d nodes are called %s; name one by its ID: %v", len(ids), typed, ids)
	}
	if len(ids) == 0 {
		return "", nil
	}
	return ids[0], nil
}

// trusted is the paired node that is meant.
func (s *Server) trusted(typed string) (node.ID, error) {
	var peers []node.Peer
	for _, e := range s.node.Trusted() {
		peers = append(peers, node.Peer{ID: e.ID, Name: cmp.Or(e.Name, e.ID.Short())})
	}
	id, err := one(peers, typed)
	if err == nil && id == "" {
		err = fmt.Errorf("%s: %w", typed, trust.ErrUnknown)
	}
	return id, err
}

// isAddress says whether something is host:port rather than a name.
func isAddress(typed string) bool {
	host, port, err := net.SplitHostPort(typed)
	return err == nil && host != "" && port != "" && strings.Trim(port, "0123456789") == ""
}

// findAt asks at each address of host:port.
func (s *Server) findAt(ctx context.Context, typed string) (node.Peer, error) {
	host, port, err := net.SplitHostPort(typed)
	if err != nil {
		return node.Peer{}, err
	}
	number, err := net.DefaultResolver.LookupPort(ctx, "tcp", port)
	if err != nil {
		return node.Peer{}, err
	}
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return node.Peer{}, err
	}
	var errs []error
	for _, a := range addrs[:min(len(addrs), 8)] {
		peer, err := s.node.Find(ctx, netip.AddrPortFrom(a.Unmap(), uint16(number)))
		if err == nil {
			return peer, nil
		}
		errs = append(errs, err)
	}
	return node.Peer{}, errors.Join(errs...)
}

// describe shows an attempt.
func describe(a *pairing.Attempt, trusted []trust.Entry) *Attempt {
	return &Attempt{
		ID: a.Peer, Name: a.PeerName, Digits: a.Digits, Incoming: a.Incoming, Expires: a.Expires,
		SameName: slices.ContainsFunc(trusted, func(e trust.Entry) bool { return e.Name == a.PeerName && e.ID != a.Peer }),
	}
}

// rowsOf lists the peers of a node, and those it is paired with that are away,
// by name.
func rowsOf(peers []node.Peer, trusted []trust.Entry) []Row {
	rows := make([]Row, 0, len(peers))
	for _, p := range peers {
		r := Row{ID: p.ID, Name: p.Name, State: string(p.State), Reason: p.Reason, Paired: p.Paired}
		for _, a := range p.Addrs {
			r.Address = append(r.Address, a.String())
		}
		rows = append(rows, r)
	}
	for _, e := range trusted {
		at := slices.IndexFunc(rows, func(r Row) bool { return r.ID == e.ID })
		if at < 0 {
			rows = append(rows, Row{ID: e.ID, Name: cmp.Or(e.Name, e.ID.Short()), State: StateAbsent})
			at = len(rows) - 1
		}
		rows[at].Paired, rows[at].Since, rows[at].Consent = true, &e.Since, e.Consent
	}
	slices.SortFunc(rows, func(a, b Row) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	return rows
}
