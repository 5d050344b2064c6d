package tcp

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"daisy/rdma"
)

// maxKept bounds what is kept of a peer that has hung up. The kernel's receive
// buffer, which it comes from, is smaller on every system known.
const maxKept = 64 << 20

// Abort implements rdma.Transport.
func (t *Transport) Abort(cause error) {
	if t.End(cause) {
		t.hangUp(header{kind: kindAbort}, rdma.AppendAbort(nil, t.rank, cause))
	}
}

// Close implements rdma.Transport.
func (t *Transport) Close() error {
	if t.End(rdma.ErrClosed) {
		t.hangUp(header{kind: kindBye}, nil)
	}
	t.wg.Wait()
	return nil
}

// hangUp frees blocked calls and, in the background, sends the last frame to
// every peer and closes the connections. Close waits for it.
func (t *Transport) hangUp(last header, payload []byte) {
	now := time.Now()
	for _, p := range t.peers {
		if p != nil {
			p.conn.SetReadDeadline(now)
			p.conn.SetWriteDeadline(now.Add(farewellTimeout))
		}
	}
	last.chunk = uint32(len(payload))
	t.wg.Go(func() {
		var wg sync.WaitGroup
		for _, p := range t.peers {
			if p != nil {
				wg.Go(func() { p.farewell(last, payload) })
			}
		}
		wg.Wait()
		t.watch.stop()
	})
}

// farewell ends the write side in order and closes. If that is not possible,
// because a frame could not be finished, it resets the connection, which
// reaches the peer even when its buffers are full.
func (p *peer) farewell(last header, payload []byte) {
	defer p.raw.Close()
	p.writeMu.Lock()
	defer p.writeMu.Unlock()
	if p.cut || p.writeFrame(last, payload) != nil {
		p.raw.SetLinger(0)
		return
	}
	if c, ok := p.conn.(interface{ CloseWrite() error }); ok && !p.plain {
		c.CloseWrite()
		if p.wire != nil {
			p.wire.flush()
		}
	}
	p.raw.CloseWrite()
	if last.kind == kindBye {
		return
	}
	// Closing now could reset the connection, and with it discard the notice,
	// if the peer is still sending. It will hang up when it has read it.
	p.readMu.Lock()
	defer p.readMu.Unlock()
	p.raw.SetReadDeadline(time.Now().Add(drainTimeout))
	p.start, p.end = 0, 0
	io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{p.raw}, p.buf)
}

// lose ends the transport because of an error on a connection, unless it has
// ended already and the error comes from that. It returns the cause.
func (t *Transport) lose(p *peer, err error) error {
	if t.Err() == nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("it closed the connection")
		}
		if op := (*net.OpError)(nil); errors.As(err, &op) {
			err = op.Err // without the addresses, which say nothing to users
		}
		t.Abort(&rdma.PeerLostError{Rank: p.rank, Cause: err})
	}
	return t.Err()
}

// broken is lose after a failed write: if the peer has told why it hung up,
// that is waiting to be read.
func (t *Transport) broken(p *peer, err error) error {
	if t.Err() == nil {
		p.conn.SetReadDeadline(time.Now().Add(drainTimeout))
		t.readLast(p)
		if t.Err() == nil {
			return t.lose(p, err)
		}
	}
	return t.Err()
}

// watchPeers looks after peers that hang up while nobody reads from them. Close
// waits for it.
func (t *Transport) watchPeers() {
	defer t.watch.close()
	for {
		r, err := t.watch.wait()
		if err != nil {
			return
		}
		t.readLast(t.peers[r])
	}
}

// readLast reads all that a peer has sent before it hung up, keeps what is for
// later calls, and looks at how it ends: with bye, with a notice, or with
// neither, which means that the peer is lost.
func (t *Transport) readLast(p *peer) {
	p.readMu.Lock()
	defer p.readMu.Unlock()
	if t.Err() != nil {
		return
	}
	p.readRest()
	cause, left := p.lastWord(len(t.peers))
	switch {
	case left:
		p.left.Store(true)
	case cause != nil:
		t.Abort(cause)
	default:
		t.lose(p, p.readErr)
	}
}

// readRest reads until there is an error, which is kept in readErr.
func (p *peer) readRest() {
	for p.readErr == nil {
		if p.end == len(p.buf) {
			if p.end-p.start > maxKept {
				p.readErr = fmt.Errorf("more than %d bytes are waiting", maxKept)
				return
			}
			bigger := make([]byte, max(2*(p.end-p.start), readBuffer))
			p.end = copy(bigger, p.buf[p.start:p.end])
			p.start, p.buf = 0, bigger
		}
		n, _ := p.read(p.buf[p.end:], nil, sleep)
		p.end += n
	}
}

// lastWord goes through the buffered frames.
func (p *peer) lastWord(worldSize int) (cause error, left bool) {
	rest := p.buf[p.start:p.end]
	for len(rest) >= headerSize {
		h, err := parseHeader((*[headerSize]byte)(rest))
		if err != nil {
			return &rdma.PeerLostError{Rank: p.rank, Cause: err}, false
		}
		rest = rest[headerSize:]
		if int(h.chunk) > len(rest) {
			break
		}
		switch h.kind {
		case kindBye:
			return nil, true
		case kindAbort:
			return rdma.ParseAbort(rest[:h.chunk], p.rank, worldSize), false
		}
		rest = rest[h.chunk:]
	}
	return nil, false
}
