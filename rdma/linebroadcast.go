package rdma

// broadcastChunk is the length of the pieces in which a broadcast is passed on
// along a line, so that all its links work at the same time.
const broadcastChunk = 256 << 10

// broadcast passes p on from the root, each way as far as that is the shorter
// one.
func (l *line) broadcast(tag Tag, p []byte) error {
	distance := 0 // of the root behind this rank, counted forward
	for l.rank(-distance) != int(tag.Root) {
		distance++
	}
	n := len(l.order)
	rootPos := (l.pos + n - distance) % n
	// How far it goes forward; the rest goes backward.
	reach := n - 1 - rootPos
	if l.ring {
		reach = n / 2
	}
	switch back := n - 1 - reach; {
	case distance == 0:
		return l.broadcastRoot(tag, p, reach > 0, back > 0)
	case distance <= reach:
		return l.pass(tag, p, 1, distance < reach)
	default:
		return l.pass(tag, p, -1, n-distance < back)
	}
}

func (l *line) broadcastRoot(tag Tag, p []byte, forward, backward bool) error {
	for {
		chunk := p[:min(len(p), broadcastChunk)]
		if forward {
			if err := l.group.transport.Send(l.rank(1), tag, chunk); err != nil {
				return err
			}
		}
		if backward {
			if err := l.group.transport.Send(l.rank(-1), tag, chunk); err != nil {
				return err
			}
		}
		if p = p[len(chunk):]; len(p) == 0 {
			return nil
		}
	}
}

// pass receives p from one neighbour and, unless this is where it ends, sends
// each chunk on while it receives the next.
func (l *line) pass(tag Tag, p []byte, dir int, on bool) error {
	t, from, to := l.group.transport, l.rank(-dir), l.rank(dir)
	chunk := p[:min(len(p), broadcastChunk)]
	if err := t.Recv(from, tag, chunk); err != nil {
		return err
	}
	for p = p[len(chunk):]; len(p) > 0; p = p[len(chunk):] {
		next := p[:min(len(p), broadcastChunk)]
		var err error
		if on {
			err = t.SendRecv(tag, to, chunk, from, next)
		} else {
			err = t.Recv(from, tag, next)
		}
		if err != nil {
			return err
		}
		chunk = next
	}
	if !on {
		return nil
	}
	return t.Send(to, tag, chunk)
}
