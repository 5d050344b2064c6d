package control

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"daisy/node/identity"
	"daisy/rdma/tcp"
)

const (
	dialTimeout = 5 * time.Second        // for all addresses of a node
	dialStagger = 150 * time.Millisecond // before the next address is tried too
)

// Dialer makes this node's connections to others. Whoever answers must hold the
// key of the node that is meant.
type Dialer struct {
	identity *identity.Identity
	addrs    func(identity.ID) []netip.AddrPort
	http     *http.Transport

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	mu     sync.Mutex // guards closed and adding to dials
	closed bool
	dials  sync.WaitGroup
	conns  conns // control connections
}

// NewDialer makes a Dialer that asks addrs where a node may be found.
func NewDialer(own *identity.Identity, addrs func(identity.ID) []netip.AddrPort) *Dialer {
	d := &Dialer{identity: own, addrs: addrs}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	d.http = newTransport(d)
	return d
}

// Close ends the control connections and waits until nothing is being dialled.
// Data connections belong to those who asked for them.
func (d *Dialer) Close() {
	d.mu.Lock()
	d.closed = true
	d.mu.Unlock()
	d.cancel()
	d.dials.Wait()
	d.conns.close()
	d.http.CloseIdleConnections()
}

// Who asks which node answers at an address; nothing is known of it but that it
// holds its key.
func (d *Dialer) Who(ctx context.Context, addr netip.AddrPort) (identity.ID, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	var id identity.ID
	conn, err := d.shake(ctx, addr, d.identity.UnpinnedConfig(controlProtocol))
	if err == nil {
		id, err = identity.PeerID(conn.ConnectionState())
		conn.Close()
	}
	return id, err
}

// DialData connects to a rank of a group and waits until it has accepted the
// preamble. extra are addresses to try beside the known ones.
func (d *Dialer) DialData(ctx context.Context, to identity.ID, extra []netip.AddrPort, p Preamble) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := d.dial(ctx, to, extra, dataProtocol)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	var answer [1]byte
	_, err = conn.Write(p.append(nil))
	if err == nil {
		_, err = conn.Read(answer[:])
	}
	if !stop() {
		err = context.Cause(ctx)
	}
	if err == nil && answer[0] != dataAccepted {
		err = errors.New("the node expects no such connection")
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// dial tries all addresses of a node, each a little after the one before, and
// returns the first connection over which the right node answers.
func (d *Dialer) dial(ctx context.Context, to identity.ID, extra []netip.AddrPort, protocol string) (*tls.Conn, error) {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil, net.ErrClosed
	}
	d.dials.Add(1)
	d.mu.Unlock()
	defer d.dials.Done()
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	defer context.AfterFunc(d.ctx, cancel)()

	addrs := unique(append(d.addrs(to), extra...))
	if len(addrs) == 0 {
		return nil, errors.New("no address of the node is known")
	}
	type result struct {
		conn *tls.Conn
		err  error
	}
	results := make(chan result)
	next, running := 0, 0
	start := func() {
		addr := addrs[next]
		next++
		running++
		go func() { // waited for below
			conn, err := d.handshake(ctx, addr, to, protocol)
			results <- result{conn, err}
		}()
	}
	start()
	stagger := time.NewTicker(dialStagger)
	defer stagger.Stop()
	var won *tls.Conn
	var errs []error
	for running > 0 {
		select {
		case <-stagger.C:
			if won == nil && next < len(addrs) {
				start()
			}
		case r := <-results:
			running--
			switch {
			case r.err != nil:
				errs = append(errs, r.err)
				if won == nil && next < len(addrs) && ctx.Err() == nil {
					start()
				}
			case won != nil:
				r.conn.Close()
			default:
				won = r.conn
				cancel()
			}
		}
	}
	if won == nil {
		return nil, errors.Join(errs...)
	}
	return won, nil
}

func (d *Dialer) handshake(ctx context.Context, addr netip.AddrPort, to identity.ID, protocol string) (*tls.Conn, error) {
	return d.shake(ctx, addr, d.identity.ClientConfig(to, protocol))
}

func (d *Dialer) shake(ctx context.Context, addr netip.AddrPort, config *tls.Config) (*tls.Conn, error) {
	dialer := net.Dialer{KeepAliveConfig: keepAlive}
	raw, err := dialer.DialContext(ctx, "tcp", addr.String())
	if err != nil {
		return nil, err
	}
	raw = tcp.Wire(raw)
	if slices.Contains(config.NextProtos, controlProtocol) {
		raw = d.conns.add(raw)
	}
	conn := tls.Client(raw, config)
	if err := conn.HandshakeContext(ctx); err != nil {
		raw.Close()
		return nil, fmt.Errorf("%s: %w", addr, err)
	}
	return conn, nil
}

// keepAlive lets TCP notice a machine that vanished, within a quarter of a
// minute.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 3 * time.Second, Count: 3}

func unique(addrs []netip.AddrPort) []netip.AddrPort {
	seen := map[netip.AddrPort]bool{}
	var out []netip.AddrPort
	for _, a := range addrs {
		if !seen[a] && a.IsValid() {
			seen[a] = true
			out = append(out, a)
		}
	}
	return out
}
