package tcp

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"runtime"
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
// each rank, nil at its own; each is a *net.TCPConn, a *tls.Conn over one, best
// with Wire between, or a wrapper whose NetConn method leads to one. They belong
// to the transport from the call on, also when it fails.
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
		if c == net.Conn(raw) {
			c = Wire(raw)
		}
		wire := wireOf(c)
		if wire != nil {
			wire.taken = true
		}
		t.peers[r] = newPeer(r, c, wire, raw)
	}
	if err := t.handshake(timeout, epoch); err != nil {
		return nil, err
	}
	watch, err := watchHangups(t.peers)
	if err != nil {
		return nil, fmt.Errorf("watching connections: %w", err)
	}
	t.watch = watch
	processors.Store(int32(runtime.GOMAXPROCS(0)))
	ranks.Add(1)
	t.wg.Go(func() {
		t.watchPeers()
		ranks.Add(-1)
	})
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

// wireOf finds the Conn at or below c, nil when there is none.
func wireOf(c net.Conn) *Conn {
	for c != nil {
		switch v := c.(type) {
		case *Conn:
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
			if err == nil && p.wire != nil && !p.plain {
				p.wire.hold()
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

// SendRecv implements rdma.Transport. A short message is simply sent first: it
// does not wait for the receiver.
func (t *Transport) SendRecv(tag rdma.Tag, to int, out []byte, from int, in []byte) error {
	dst, src := t.peers[to], t.peers[from]
	if len(out) <= eagerLimit {
		if err := t.send(dst, tag, out); err != nil {
			return err
		}
		return t.recv(src, tag, in)
	}
	dst.writeMu.Lock()
	src.readMu.Lock()
	dst.out.begin(tag, out)
	src.in.begin(tag, in)
	wrote, err := t.both(dst, src)
	src.readMu.Unlock()
	dst.writeMu.Unlock()
	if wrote != nil {
		wrote = t.broken(dst, wrote)
	}
	if err != nil {
		return err
	}
	return wrote
}

// both writes and reads in turns without waiting for either, which keeps both
// directions full without a second goroutine. Only when neither moves for a
// while it leaves the writing to the peer's goroutine and sleeps until there is
// something to read. Errors are those of pushAll and pullAll.
func (t *Transport) both(dst, src *peer) (wrote, read error) {
	var sent, got progress
	if dst.wire != nil && src.wire != nil {
		for wrote == nil && read == nil && (sent != done || got != done) {
			if sent != done {
				sent, wrote = t.push(dst, look)
			}
			if got != done && wrote == nil {
				got, read = t.pull(src, look)
			}
			if sent == moved || got == moved || sent == done && got == done {
				dst.both.found()
			} else if !dst.both.again() {
				break
			}
		}
	}
	handed := false
	if wrote == nil && sent != done && read == nil && got != done {
		select {
		case dst.long <- struct{}{}:
			handed = true
		case <-t.Done():
		}
	}
	if wrote == nil && read == nil && got != done {
		read = t.pullAll(src)
	}
	if handed {
		wrote = <-dst.longSent
	} else if wrote == nil && sent != done {
		wrote = t.pushAll(dst)
	}
	return wrote, read
}

// writeLong writes the long messages to one peer. Close waits for it.
func (t *Transport) writeLong(p *peer) {
	for {
		select {
		case <-p.long:
			p.longSent <- t.pushAll(p)
		case <-t.Done():
			return
		}
	}
}
