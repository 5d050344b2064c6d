package tcp

import "daisy/rdma"

// An outgoing message, as far as it has been written.
type outgoing struct {
	tag    rdma.Tag
	rest   []byte // of the message, in no frame yet
	begun  bool   // a frame is made and not written
	head   []byte // of the frame, not written
	chunk  []byte // of the frame, not written
	header [headerSize]byte
	joined []byte // header and payload together, for TLS
}

// sealed is how many bytes of payload go through TLS before they go to the
// kernel: enough that the calls do not count, little enough to stay in a core's
// cache.
const sealed = 64 << 10

// send writes one message, blocking while the kernel's buffers are full.
func (t *Transport) send(p *peer, tag rdma.Tag, data []byte) error {
	p.writeMu.Lock()
	p.out.begin(tag, data)
	err := t.pushAll(p)
	p.writeMu.Unlock()
	if err == nil {
		return nil
	}
	return t.broken(p, err)
}

func (m *outgoing) begin(tag rdma.Tag, data []byte) {
	m.tag, m.rest, m.begun = tag, data, false
}

// pushAll writes what is left of the message. It ends early, but not within a
// frame, when the transport has ended.
func (t *Transport) pushAll(p *peer) error {
	for {
		if got, err := t.push(p, sleep); got == done || err != nil {
			p.out.rest, p.out.chunk = nil, nil
			return err
		}
	}
}

// push writes a part of the message.
func (t *Transport) push(p *peer, mode patience) (progress, error) {
	m := &p.out
	if m.begun && p.written() {
		if len(m.rest) == 0 {
			return done, nil
		}
		m.begun = false
	}
	if !m.begun {
		if err := t.Err(); err != nil {
			return stuck, err
		}
		if p.left.Load() {
			return stuck, errLeft
		}
		m.frame(header{kind: kindData, tag: m.tag, left: uint64(len(m.rest))}, m.rest[:min(len(m.rest), maxChunk)])
		m.rest, m.begun = m.rest[len(m.chunk):], true
	}
	ok, err := p.write(mode)
	switch {
	case err == errAgain && !ok:
		return stuck, nil
	case err != nil && err != errAgain:
		p.cut = true
		return stuck, err
	case len(m.rest) == 0 && p.written():
		return done, nil
	}
	return moved, nil
}

// written says whether the kernel has all of the frame.
func (p *peer) written() bool {
	return len(p.out.head)+len(p.out.chunk) == 0 && (p.wire == nil || !p.wire.holding())
}

// frame starts the next frame. The one before has been written.
func (m *outgoing) frame(h header, payload []byte) {
	h.chunk = uint32(len(payload))
	h.put(&m.header)
	m.head, m.chunk = m.header[:], payload
}

// writeFrame writes a frame of its own. The caller holds writeMu.
func (p *peer) writeFrame(h header, payload []byte) error {
	p.out.frame(h, payload)
	for !p.written() {
		if _, err := p.write(sleep); err != nil {
			p.cut = true
			return err
		}
	}
	return nil
}

// write writes a part of the frame and says whether anything moved. Without an
// error, all that has been taken off the frame is with the kernel.
func (p *peer) write(mode patience) (moved bool, err error) {
	m := &p.out
	if p.plain {
		p.wire.out.mode = mode
		first, second := m.head, m.chunk
		if len(first) == 0 {
			first, second = second, nil
		}
		n, err := p.wire.writeSome(first, second)
		k := min(n, len(m.head))
		m.head, m.chunk = m.head[k:], m.chunk[n-k:]
		return n > 0, err
	}
	if p.wire != nil {
		p.wire.out.mode = mode
		if p.wire.holding() {
			return p.wire.flush()
		}
	}
	part := m.chunk[:min(len(m.chunk), sealed)]
	if len(m.head) > 0 { // the header travels with the first part
		m.joined = append(append(m.joined[:0], m.head...), part...)
		_, err = p.conn.Write(m.joined)
	} else {
		_, err = p.conn.Write(part)
	}
	if err != nil {
		return false, err
	}
	m.head, m.chunk = nil, m.chunk[len(part):]
	if p.wire != nil {
		_, err = p.wire.flush()
	}
	return true, err
}
