// Package mem is the rdma transport between ranks inside one process: for
// tests, and for trying a split on one machine.
//
// Messages up to EagerLimit are copied into buffers that belong to the pair of
// ranks and are used again; longer ones are copied once, straight from the
// sender's memory to the receiver's, while the sender waits. It starts no
// goroutines.
package mem

import (
	"errors"

	"daisy/rdma"
)

// eagerLimit is the longest message that is buffered.
const eagerLimit = 64 << 10

// New returns the transports of all ranks, by rank. Each is closed by its own
// user.
func New(worldSize int) []rdma.Transport {
	f := &fabric{ranks: make([]*Transport, worldSize)}
	out := make([]rdma.Transport, worldSize)
	for r := range f.ranks {
		t := &Transport{Ending: rdma.NewEnding(), fabric: f, rank: r, from: make([]*pipe, worldSize)}
		for s := range t.from {
			t.from[s] = newPipe()
		}
		f.ranks[r], out[r] = t, t
	}
	return out
}

// A fabric is what the ranks of one group share.
type fabric struct{ ranks []*Transport }

// Transport is one rank's end.
type Transport struct {
	*rdma.Ending
	fabric *fabric
	rank   int
	from   []*pipe // what comes from each rank
}

// Kind returns "mem".
func (t *Transport) Kind() string { return "mem" }

// Rank implements rdma.Transport.
func (t *Transport) Rank() int { return t.rank }

// WorldSize implements rdma.Transport.
func (t *Transport) WorldSize() int { return len(t.from) }

// EagerLimit implements rdma.Transport.
func (t *Transport) EagerLimit() int { return eagerLimit }

// wholeLimit is low: a message costs about as much as copying and adding up a
// kilobyte. The algorithms cross at 1 to 2 KiB where all ranks are connected and
// at 4 to 8 on a chain (BenchmarkAlgorithm in package rdma).
const wholeLimit = 2 << 10

// WholeLimit implements rdma.Tuned.
func (t *Transport) WholeLimit() int { return wholeLimit }

// Send implements rdma.Transport.
func (t *Transport) Send(to int, tag rdma.Tag, p []byte) error {
	pipe := t.fabric.ranks[to].from[t.rank]
	pipe.sendMu.Lock()
	defer pipe.sendMu.Unlock()
	if err := t.post(pipe, to, tag, p); err != nil {
		return err
	}
	return t.awaitTaken(pipe, to, p)
}

// post puts a message on its way. Of a long one the memory stays in use until
// awaitTaken. The caller holds sendMu.
func (t *Transport) post(pipe *pipe, to int, tag rdma.Tag, p []byte) error {
	for {
		if err := t.Err(); err != nil {
			return err
		}
		if pipe.room() > 0 {
			pipe.put(tag, p)
			return nil
		}
		if pipe.taken.prepare(); pipe.room() > 0 {
			continue
		}
		select {
		case <-pipe.taken.c:
		case <-t.Done():
		case <-t.fabric.ranks[to].Done():
			return t.gone(to)
		}
	}
}

// awaitTaken waits until the receiver has all messages, if p is a long one.
func (t *Transport) awaitTaken(pipe *pipe, to int, p []byte) error {
	if len(p) <= eagerLimit {
		return nil
	}
	for pipe.room() < queueLength {
		if pipe.taken.prepare(); pipe.room() == queueLength {
			return nil
		}
		select {
		case <-pipe.taken.c:
			continue
		case <-t.Done():
		case <-t.fabric.ranks[to].Done():
			t.gone(to)
		}
		// The receiver may be copying from p at this moment: it holds copyMu.
		pipe.copyMu.Lock()
		defer pipe.copyMu.Unlock()
		if pipe.room() == queueLength {
			return nil
		}
		pipe.revoked = true
		return t.Err()
	}
	return nil
}

// Recv implements rdma.Transport.
func (t *Transport) Recv(from int, tag rdma.Tag, p []byte) error {
	pipe := t.from[from]
	pipe.recvMu.Lock()
	defer pipe.recvMu.Unlock()
	for {
		if err := t.Err(); err != nil {
			return err
		}
		if pipe.waiting() {
			return t.take(pipe, from, tag, p)
		}
		if pipe.posted.prepare(); pipe.waiting() {
			continue
		}
		select {
		case <-pipe.posted.c:
		case <-t.Done():
		case <-pipe.left:
			// What it sent before it left comes first.
			if !pipe.waiting() {
				return t.gone(from)
			}
		}
	}
}

// take stores the first message in p. The caller holds recvMu.
func (t *Transport) take(pipe *pipe, from int, tag rdma.Tag, p []byte) error {
	m := pipe.first()
	if m.tag != tag || m.nBytes != len(p) {
		t.Abort(&rdma.MismatchError{Rank: from, Got: m.tag, Want: tag,
			GotBytes: uint64(m.nBytes), WantBytes: uint64(len(p))})
		return t.Err()
	}
	if m.nBytes <= eagerLimit {
		copy(p, m.buffer[:m.nBytes])
		pipe.drop()
		return nil
	}
	pipe.copyMu.Lock()
	defer pipe.copyMu.Unlock()
	if pipe.revoked {
		return t.gone(from)
	}
	copy(p, m.long)
	pipe.drop()
	return nil
}

// SendRecv implements rdma.Transport.
func (t *Transport) SendRecv(tag rdma.Tag, to int, out []byte, from int, in []byte) error {
	pipe := t.fabric.ranks[to].from[t.rank]
	pipe.sendMu.Lock()
	defer pipe.sendMu.Unlock()
	if err := t.post(pipe, to, tag, out); err != nil {
		return err
	}
	err := t.Recv(from, tag, in)
	if sent := t.awaitTaken(pipe, to, out); err == nil {
		err = sent
	}
	return err
}

// gone ends the transport because a peer that is needed has ended: by itself,
// or for a cause of which it is just about to tell.
func (t *Transport) gone(peer int) error {
	cause := t.fabric.ranks[peer].Err()
	switch cause {
	case rdma.ErrClosed:
		cause = &rdma.PeerLostError{Rank: peer, Cause: errors.New("it left the group")}
	case errKilled:
		cause = &rdma.PeerLostError{Rank: peer, Cause: cause}
	default:
		cause = rdma.ParseAbort(rdma.AppendAbort(nil, peer, cause), peer, len(t.from))
	}
	t.Abort(cause)
	return t.Err()
}

// Abort implements rdma.Transport.
func (t *Transport) Abort(cause error) {
	if !t.End(cause) {
		return
	}
	notice := rdma.AppendAbort(nil, t.rank, t.Err())
	for r, peer := range t.fabric.ranks {
		if r != t.rank {
			peer.End(rdma.ParseAbort(notice, t.rank, len(t.from)))
		}
	}
}

// Close implements rdma.Transport.
func (t *Transport) Close() error {
	t.End(rdma.ErrClosed)
	for r, peer := range t.fabric.ranks {
		if r != t.rank {
			peer.from[t.rank].leave()
		}
	}
	return nil
}

var errKilled = errors.New("it was killed")

// Kill ends the rank as the death of its process would: no farewell, and every
// peer loses it. For tests.
func (t *Transport) Kill() {
	t.End(errKilled)
	for r, peer := range t.fabric.ranks {
		if r != t.rank {
			peer.Abort(&rdma.PeerLostError{Rank: t.rank, Cause: errKilled})
		}
	}
}

var _ rdma.Tuned = (*Transport)(nil)
