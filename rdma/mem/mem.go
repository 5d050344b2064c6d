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
	"sync"

	"daisy/rdma"
)

const (
	// eagerLimit is the longest message that is buffered.
	eagerLimit = 64 << 10
	// queueLength is how many messages of a pair may be under way: one of the
	// collective that the receiver is in, one of the next, and as many again
	// so that a broadcasting rank can run ahead a little.
	queueLength = 4
)

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

// A pipe is one direction of one pair.
type pipe struct {
	queue chan message
	free  chan []byte   // buffers for eager messages
	taken chan struct{} // the receiver has copied a long message

	sendMu sync.Mutex // one sender at a time
	recvMu sync.Mutex // held while the receiver copies; guards revoked
	// revoked says that the sender of a long message has gone and its memory
	// must not be read any more.
	revoked bool

	left      chan struct{}
	leaveOnce sync.Once
}

type message struct {
	tag  rdma.Tag
	p    []byte
	long bool // p is the sender's own memory
}

func newPipe() *pipe {
	p := &pipe{
		queue: make(chan message, queueLength),
		free:  make(chan []byte, queueLength),
		taken: make(chan struct{}, 1),
		left:  make(chan struct{}),
	}
	for range queueLength {
		p.free <- nil
	}
	return p
}

// Kind returns "mem".
func (t *Transport) Kind() string { return "mem" }

// Rank implements rdma.Transport.
func (t *Transport) Rank() int { return t.rank }

// WorldSize implements rdma.Transport.
func (t *Transport) WorldSize() int { return len(t.from) }

// EagerLimit implements rdma.Transport.
func (t *Transport) EagerLimit() int { return eagerLimit }

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
// awaitTaken.
func (t *Transport) post(pipe *pipe, to int, tag rdma.Tag, p []byte) error {
	if err := t.Err(); err != nil {
		return err
	}
	m := message{tag: tag, p: p, long: len(p) > eagerLimit}
	if !m.long {
		select {
		case m.p = <-pipe.free:
		default:
			select {
			case m.p = <-pipe.free:
			case <-t.Done():
				return t.Err()
			case <-t.fabric.ranks[to].Done():
				return t.gone(to)
			}
		}
		m.p = append(m.p[:0], p...)
	}
	select {
	case pipe.queue <- m:
		return nil
	case <-t.Done():
		return t.Err()
	case <-t.fabric.ranks[to].Done():
		return t.gone(to)
	}
}

func (t *Transport) awaitTaken(pipe *pipe, to int, p []byte) error {
	if len(p) <= eagerLimit {
		return nil
	}
	select {
	case <-pipe.taken:
		return nil
	case <-t.Done():
	case <-t.fabric.ranks[to].Done():
		t.gone(to)
	}
	// The receiver may be copying from p at this moment: it holds recvMu.
	pipe.recvMu.Lock()
	defer pipe.recvMu.Unlock()
	select {
	case <-pipe.taken:
		return nil
	default:
		pipe.revoked = true
		return t.Err()
	}
}

// Recv implements rdma.Transport.
func (t *Transport) Recv(from int, tag rdma.Tag, p []byte) error {
	pipe := t.from[from]
	var m message
	select {
	case m = <-pipe.queue:
	default:
		select {
		case m = <-pipe.queue:
		case <-t.Done():
			return t.Err()
		case <-pipe.left:
			// It left after it sent: what it sent comes first.
			select {
			case m = <-pipe.queue:
			default:
				return t.gone(from)
			}
		}
	}
	pipe.recvMu.Lock()
	defer pipe.recvMu.Unlock()
	if err := t.Err(); err != nil {
		return err
	}
	if m.long && pipe.revoked {
		return t.gone(from)
	}
	if m.tag != tag || len(m.p) != len(p) {
		t.Abort(&rdma.MismatchError{Rank: from, Got: m.tag, Want: tag,
			GotBytes: uint64(len(m.p)), WantBytes: uint64(len(p))})
		return t.Err()
	}
	copy(p, m.p)
	if m.long {
		pipe.taken <- struct{}{}
	} else {
		pipe.free <- m.p
	}
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

func (p *pipe) leave() { p.leaveOnce.Do(func() { close(p.left) }) }

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

var _ rdma.Transport = (*Transport)(nil)
