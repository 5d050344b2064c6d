package tcp

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"daisy/rdma"
)

const (
	// handshakeTimeout is how long New waits for the slowest peer.
	handshakeTimeout = 10 * time.Second
	// eagerLimit is safely below what kernels buffer for a connection whose
	// receiver is not reading: 64 KiB of receive window on Linux, 128 on macOS.
	eagerLimit = 32 << 10
	// farewellTimeout bounds how long a message under way may take to finish
	// once the transport has ended, and the abort notice after it;
	// drainTimeout how long a peer may take to hang up after that.
	farewellTimeout = 100 * time.Millisecond
	drainTimeout    = 150 * time.Millisecond
)

// Transport is one rank's end of a group over TCP. It implements
// rdma.Transport.
type Transport struct {
	*rdma.Ending
	rank  int
	kind  string
	peers []*peer // by rank, nil at its own
	watch *hangups
	wg    sync.WaitGroup // every goroutine of the transport
}

// New makes this rank's transport of a group. conns holds the connection to
// each rank, nil at its own; each is a *net.TCPConn, a *tls.Conn over one, or a
// wrapper whose NetConn method leads to one. They belong to the transport from
// the call on, also when it fails.
//
// New blocks until all peers have called it with the same world size and epoch,
// ten seconds at most.
func New(rank, worldSize int, epoch uint64, conns []net.Conn) (rdma.Transport, error) {
	return connectWithin(handshakeTimeout, rank, worldSize, epoch, conns)
}

func connectWithin(timeout time.Duration, rank, worldSize int, epoch uint64, conns []net.Conn) (rdma.Transport, error) {
	t, err := connect(timeout, rank, worldSize, epoch, conns)
	if err != nil {
		for _, c := range conns {
			if c != nil {
				c.Close()
			}
		}
		return nil, fmt.Errorf("tcp: rank %d of %d: %w", rank, worldSize, err)
	}
	return t, nil
}

func connect(timeout time.Duration, rank, worldSize int, epoch uint64, conns []net.Conn) (*Transport, error) {
	if worldSize < 1 || worldSize > 1<<16 || rank < 0 || rank >= worldSize || len(conns) != worldSize || conns[rank] != nil {
		return nil, fmt.Errorf("%d connections do not fit", len(conns))
	}
	t := &Transport{Ending: rdma.NewEnding(), rank: rank, kind: "tcp+tls", peers: make([]*peer, worldSize)}
	for r, c := range conns {
		if r == rank {
			continue
		}
		raw := tcpConn(c)
		if raw == nil {
			return nil, fmt.Errorf("the connection to rank %d is no TCP connection but a %T", r, c)
		}
		if err := raw.SetNoDelay(true); err != nil {
			return nil, fmt.Errorf("rank %d: %w", r, err)
		}
		if _, ok := c.(*tls.Conn); !ok {
			t.kind = "tcp"
		}
		t.peers[r] = newPeer(r, c, raw)
	}
	if err := t.handshake(timeout, epoch); err != nil {
		return nil, err
	}
	watch, err := watchHangups(t.peers)
	if err != nil {
		return nil, fmt.Errorf("watching connections: %w", err)
	}
	t.watch = watch
	t.wg.Go(t.watchPeers)
	for _, p := range t.peers {
		if p != nil {
			t.wg.Go(func() { t.writeLong(p) })
		}
	}
	return t, nil
}

// tcpConn finds the TCP connection below c, nil when there is none.
func tcpConn(c net.Conn) *net.TCPConn {
	for c != nil {
		switch v := c.(type) {
		case *net.TCPConn:
			return v
		case interface{ NetConn() net.Conn }:
			c = v.NetConn()
		default:
			return nil
		}
	}
	return nil
}

func (t *Transport) handshake(timeout time.Duration, epoch uint64) error {
	deadline := time.Now().Add(timeout)
	errs := make([]error, len(t.peers))
	var wg sync.WaitGroup
	for r, p := range t.peers {
		if p == nil {
			continue
		}
		wg.Go(func() {
			err := p.conn.SetDeadline(deadline)
			if err == nil {
				err = shakeHands(p.conn, hello{version: version, from: uint32(t.rank), to: uint32(r),
					worldSize: uint32(len(t.peers)), epoch: epoch})
			}
			if err == nil {
				err = p.conn.SetDeadline(time.Time{})
			}
			if err != nil {
				errs[r] = fmt.Errorf("handshake with rank %d: %w", r, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Kind is "tcp+tls" when all connections are TLS, else "tcp".
func (t *Transport) Kind() string { return t.kind }

// Rank implements rdma.Transport.
func (t *Transport) Rank() int { return t.rank }

// WorldSize implements rdma.Transport.
func (t *Transport) WorldSize() int { return len(t.peers) }

// EagerLimit implements rdma.Transport.
func (t *Transport) EagerLimit() int { return eagerLimit }

// Send implements rdma.Transport.
func (t *Transport) Send(to int, tag rdma.Tag, p []byte) error { return t.send(t.peers[to], tag, p) }

// Recv implements rdma.Transport.
func (t *Transport) Recv(from int, tag rdma.Tag, p []byte) error {
	return t.recv(t.peers[from], tag, p)
}

// SendRecv implements rdma.Transport. A short message is simply sent first:
// it does not wait for the receiver. A long one is left to the peer's writing
// goroutine while this one receives.
func (t *Transport) SendRecv(tag rdma.Tag, to int, out []byte, from int, in []byte) error {
	dst, src := t.peers[to], t.peers[from]
	if len(out) <= eagerLimit {
		if err := t.send(dst, tag, out); err != nil {
			return err
		}
		return t.recv(src, tag, in)
	}
	dst.longMu.Lock()
	defer dst.longMu.Unlock()
	select {
	case dst.long <- longMessage{tag, out}:
	case <-t.Done():
		return t.Err()
	}
	err := t.recv(src, tag, in)
	if sent := <-dst.longSent; err == nil {
		err = sent
	}
	return err
}

// writeLong writes the long messages to one peer. Close waits for it.
func (t *Transport) writeLong(p *peer) {
	for {
		select {
		case m := <-p.long:
			p.longSent <- t.send(p, m.tag, m.p)
		case <-t.Done():
			return
		}
	}
}
