package tcp

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"

	"daisy/rdma"
)

// A peer is this rank's end of one pair.
type peer struct {
	rank  int
	conn  net.Conn     // what frames go through
	raw   *net.TCPConn // the same or what is below it
	plain bool         // conn is raw

	// left is set when the peer has said bye.
	left atomic.Bool

	longMu   sync.Mutex // one SendRecv of a long message at a time
	long     chan longMessage
	longSent chan error

	writeMu sync.Mutex // guards the following, held for a whole message
	head    [headerSize]byte
	vector  [2][]byte
	buffers net.Buffers
	joined  []byte // header and payload together, for TLS
	cut     bool   // a frame was not written to its end

	readMu     sync.Mutex // guards the following, held for a whole message
	buf        []byte     // buf[start:end] was read and not yet used
	start, end int
	readErr    error // why there is nothing to read any more
}

type longMessage struct {
	tag rdma.Tag
	p   []byte
}

// readBuffer holds a header and an eager message, so that one read gets both.
const readBuffer = 64 << 10

func newPeer(rank int, c net.Conn, raw *net.TCPConn) *peer {
	return &peer{rank: rank, conn: c, raw: raw, plain: c == net.Conn(raw),
		long: make(chan longMessage), longSent: make(chan error, 1), buf: make([]byte, readBuffer)}
}

var errLeft = errors.New("it left the group")

// send writes one message, blocking while the kernel's buffers are full.
func (t *Transport) send(p *peer, tag rdma.Tag, data []byte) error {
	p.writeMu.Lock()
	err := t.sendLocked(p, tag, data)
	p.writeMu.Unlock()
	if err == nil {
		return nil
	}
	return t.broken(p, err)
}

func (t *Transport) sendLocked(p *peer, tag rdma.Tag, data []byte) error {
	h := header{kind: kindData, tag: tag}
	for {
		if err := t.Err(); err != nil {
			return err
		}
		if p.left.Load() {
			return errLeft
		}
		chunk := data[:min(len(data), maxChunk)]
		h.chunk, h.left = uint32(len(chunk)), uint64(len(data))
		if err := p.writeFrame(h, chunk); err != nil {
			return err
		}
		if data = data[len(chunk):]; len(data) == 0 {
			return nil
		}
	}
}

// writeFrame writes header and payload with one system call where possible.
// The caller holds writeMu.
func (p *peer) writeFrame(h header, payload []byte) error {
	h.put(&p.head)
	err := p.writeBoth(payload)
	if err != nil {
		p.cut = true
	}
	return err
}

func (p *peer) writeBoth(payload []byte) error {
	if p.plain {
		p.vector = [2][]byte{p.head[:], payload}
		p.buffers = p.vector[:]
		_, err := p.buffers.WriteTo(p.raw)
		p.vector[1] = nil
		return err
	}
	// TLS copies anyway: the header travels with the first part of the payload.
	first := payload[:min(len(payload), eagerLimit)]
	p.joined = append(append(p.joined[:0], p.head[:]...), first...)
	if _, err := p.conn.Write(p.joined); err != nil {
		return err
	}
	if rest := payload[len(first):]; len(rest) > 0 {
		_, err := p.conn.Write(rest)
		return err
	}
	return nil
}

// recv reads one message, which must be the expected one.
func (t *Transport) recv(p *peer, tag rdma.Tag, dst []byte) error {
	p.readMu.Lock()
	defer p.readMu.Unlock()
	for {
		if err := t.Err(); err != nil {
			return err
		}
		h, err := p.readHeader()
		if err != nil {
			return t.lose(p, err)
		}
		switch h.kind {
		case kindAbort:
			var notice [rdma.MaxAbort]byte
			if err := p.readFull(notice[:h.chunk]); err != nil {
				return t.lose(p, err)
			}
			t.Abort(rdma.ParseAbort(notice[:h.chunk], p.rank, len(t.peers)))
			return t.Err()
		case kindBye:
			return t.lose(p, errLeft)
		}
		if h.tag != tag || h.left != uint64(len(dst)) {
			t.Abort(&rdma.MismatchError{Rank: p.rank, Got: h.tag, Want: tag, GotBytes: h.left, WantBytes: uint64(len(dst))})
			return t.Err()
		}
		if err := p.readFull(dst[:h.chunk]); err != nil {
			return t.lose(p, err)
		}
		if dst = dst[h.chunk:]; len(dst) == 0 {
			return nil
		}
	}
}

func (p *peer) readHeader() (header, error) {
	for p.end-p.start < headerSize {
		if p.readErr != nil {
			return header{}, p.readErr
		}
		if p.start > 0 {
			p.end = copy(p.buf, p.buf[p.start:p.end])
			p.start = 0
		}
		n, err := p.conn.Read(p.buf[p.end:])
		p.end += n
		if err != nil {
			p.readErr = err
		}
	}
	h, err := parseHeader((*[headerSize]byte)(p.buf[p.start:]))
	p.start += headerSize
	return h, err
}

// readFull takes what is buffered and reads the rest straight into dst.
func (p *peer) readFull(dst []byte) error {
	n := copy(dst, p.buf[p.start:p.end])
	p.start += n
	for n < len(dst) {
		if p.readErr != nil {
			return p.readErr
		}
		m, err := p.conn.Read(dst[n:])
		n += m
		if err != nil {
			p.readErr = err
		}
	}
	return nil
}
