package tcp

import "daisy/rdma"

// An incoming message, as far as it has been read.
type incoming struct {
	tag   rdma.Tag
	rest  []byte // of the receiver's memory, still to be filled
	chunk int    // of the frame, still to come; 0 before a header
}

// recv reads one message, which must be the expected one.
func (t *Transport) recv(p *peer, tag rdma.Tag, dst []byte) error {
	p.readMu.Lock()
	defer p.readMu.Unlock()
	p.in.begin(tag, dst)
	return t.pullAll(p)
}

func (m *incoming) begin(tag rdma.Tag, dst []byte) { *m = incoming{tag: tag, rest: dst} }

// pullAll reads what is left of the message.
func (t *Transport) pullAll(p *peer) error {
	for {
		if got, err := t.pull(p, sleep); got == done || err != nil {
			p.in.rest = nil
			return err
		}
	}
}

// pull reads a part of the message. An error has ended the transport.
func (t *Transport) pull(p *peer, mode patience) (progress, error) {
	m := &p.in
	if m.chunk == 0 {
		return t.pullHeader(p, mode)
	}
	n, err := p.read(m.rest[:m.chunk], nil, mode)
	m.rest, m.chunk = m.rest[n:], m.chunk-n
	switch {
	case n > 0 && len(m.rest) == 0:
		return done, nil
	case n > 0:
		return moved, nil
	case err == errAgain:
		return stuck, nil
	}
	return stuck, t.lose(p, err)
}

// pullHeader reads a header, checks it, and takes what was read with it.
func (t *Transport) pullHeader(p *peer, mode patience) (progress, error) {
	if err := t.Err(); err != nil {
		return stuck, err
	}
	m, direct := &p.in, 0
	if p.end-p.start < headerSize {
		if p.start > 0 {
			p.end = copy(p.buf, p.buf[p.start:p.end])
			p.start = 0
		}
		before := p.end
		var err error
		direct, err = p.fill(mode)
		switch {
		case p.end == before && err == errAgain:
			return stuck, nil
		case p.end == before:
			return stuck, t.lose(p, err)
		case p.end < headerSize:
			return moved, nil
		}
	}
	h, err := parseHeader((*[headerSize]byte)(p.buf[p.start:]))
	if err != nil {
		return stuck, t.lose(p, err)
	}
	p.start += headerSize
	switch h.kind {
	case kindAbort:
		p.end += copy(p.buf[p.end:], m.rest[:direct]) // the notice, not a message
		var notice [rdma.MaxAbort]byte
		if err := p.readFull(notice[:h.chunk]); err != nil {
			return stuck, t.lose(p, err)
		}
		t.Abort(rdma.ParseAbort(notice[:h.chunk], p.rank, len(t.peers)))
		return stuck, t.Err()
	case kindBye:
		return stuck, t.lose(p, errLeft)
	}
	if h.tag != m.tag || h.left != uint64(len(m.rest)) {
		t.Abort(&rdma.MismatchError{Rank: p.rank, Got: h.tag, Want: m.tag, GotBytes: h.left, WantBytes: uint64(len(m.rest))})
		return stuck, t.Err()
	}
	n := min(direct, int(h.chunk))
	if p.start < p.end {
		n = copy(m.rest[:h.chunk], p.buf[p.start:p.end])
		p.start += n
	}
	m.rest, m.chunk = m.rest[n:], int(h.chunk)-n
	if len(m.rest) == 0 {
		return done, nil
	}
	return moved, nil
}

// readFull takes what is buffered and reads the rest straight into dst.
func (p *peer) readFull(dst []byte) error {
	n := copy(dst, p.buf[p.start:p.end])
	p.start += n
	for n < len(dst) {
		m, err := p.read(dst[n:], nil, sleep)
		n += m
		if m == 0 {
			return err
		}
	}
	return nil
}

// fill reads into buf, which has room, and if it can, what exceeds a header
// straight into the receiver's memory, of which it says how many bytes it got.
func (p *peer) fill(mode patience) (direct int, err error) {
	need := headerSize - (p.end - p.start)
	if !p.plain {
		n, err := p.read(p.buf[p.end:], nil, mode)
		p.end += n
		return 0, err
	}
	n, err := p.read(p.buf[p.end:][:need], p.in.rest[:min(len(p.in.rest), maxChunk)], mode)
	p.end += min(n, need)
	return max(n-need, 0), err
}

// read reads from the connection, into first and, only where it is plain, then
// second. It returns bytes or an error, never both; the
// error stays, unless it is errAgain.
func (p *peer) read(first, second []byte, mode patience) (n int, err error) {
	if p.readErr != nil {
		return 0, p.readErr
	}
	if p.wire != nil {
		p.wire.in.mode = mode
	}
	switch {
	case p.plain:
		n, err = p.wire.readSome(first, second)
	case mode == look && p.dry && !p.wire.readable():
		return 0, errAgain // each call of TLS in vain would cost an allocation
	default:
		n, err = p.conn.Read(first)
		p.dry = err == errAgain
	}
	if err != nil && err != errAgain {
		p.readErr = err
	}
	if n > 0 {
		err = nil
	}
	return n, err
}
