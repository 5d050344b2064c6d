package verbs

import (
	"errors"
	"sync"
	"time"

	"daisy/rdma"
)

// Transport is one rank's end of a group of which some pairs, or all, exchange
// their data by RDMA. It implements rdma.Transport. It ends when its base
// transport does.
type Transport struct {
	base  rdma.Transport
	kind  string
	pairs []*pair // by rank; nil where the base carries the data
	links []rdma.Link
	eager int

	mixed []*mixedSender // by rank, when some pairs have verbs and some have not
	wg    sync.WaitGroup // of watchPorts and the mixed senders

	closeOnce sync.Once
	marker    *marker
}

// Kind is "verbs" when all pairs of this rank use it, "verbs+tcp" (or whatever
// the base is) when some do, and the base's own when none does.
func (t *Transport) Kind() string { return t.kind }

// Rank implements rdma.Transport.
func (t *Transport) Rank() int { return t.base.Rank() }

// WorldSize implements rdma.Transport.
func (t *Transport) WorldSize() int { return t.base.WorldSize() }

// EagerLimit implements rdma.Transport.
func (t *Transport) EagerLimit() int { return t.eager }

// Done implements rdma.Transport.
func (t *Transport) Done() <-chan struct{} { return t.base.Done() }

// Err implements rdma.Transport.
func (t *Transport) Err() error { return t.base.Err() }

// Abort implements rdma.Transport.
func (t *Transport) Abort(cause error) { t.base.Abort(cause) }

// Send implements rdma.Transport.
func (t *Transport) Send(to int, tag rdma.Tag, p []byte) error {
	pair := t.pairs[to]
	if pair == nil {
		return t.base.Send(to, tag, p)
	}
	out := outgoing{pair: pair, tag: tag, rest: p}
	return t.ended(t.run(&out, nil, time.Time{}))
}

// Recv implements rdma.Transport. It polls: for some twenty microseconds
// without a pause, then less and less often, down to a thousand times a second.
func (t *Transport) Recv(from int, tag rdma.Tag, p []byte) error {
	pair := t.pairs[from]
	if pair == nil {
		return t.base.Recv(from, tag, p)
	}
	in := incoming{pair: pair, tag: tag, rest: p}
	return t.ended(t.run(nil, &in, time.Time{}))
}

// SendRecv implements rdma.Transport. One goroutine, the caller's, does both.
// Only where one side is the base's a second one takes the sending.
func (t *Transport) SendRecv(tag rdma.Tag, to int, out []byte, from int, in []byte) error {
	dst, src := t.pairs[to], t.pairs[from]
	switch {
	case dst != nil && src != nil:
		o := outgoing{pair: dst, tag: tag, rest: out}
		i := incoming{pair: src, tag: tag, rest: in}
		return t.ended(t.run(&o, &i, time.Time{}))
	case dst == nil && src == nil:
		return t.base.SendRecv(tag, to, out, from, in)
	case len(out) <= t.eager:
		if err := t.Send(to, tag, out); err != nil {
			return err
		}
		return t.Recv(from, tag, in)
	}
	return t.mixed[to].sendRecv(t, tag, out, from, in)
}

var errDeadline = errors.New("it did not answer in time")

// run moves a message each way, or one of them, polling until both are done,
// the transport ends, or the deadline passes, if there is one.
func (t *Transport) run(out *outgoing, in *incoming, deadline time.Time) error {
	err := t.Err()
	var w waiter
	for err == nil {
		moved, waiting := false, false
		if out != nil && !out.done {
			var m bool
			m, err = out.push()
			moved, waiting = m, !out.done
			if err != nil {
				break
			}
		}
		if in != nil && !in.done {
			var m bool
			m, err = in.pull()
			moved, waiting = moved || m, waiting || !in.done
			if err != nil {
				break
			}
		}
		if !waiting {
			break
		}
		if moved {
			w.reset()
			continue
		}
		w.pause()
		if w.look() {
			select {
			case <-t.base.Done():
				err = t.base.Err()
			default:
			}
			if !deadline.IsZero() && w.now > 0 && time.Now().After(deadline) {
				err = errDeadline
			}
		}
	}
	if out != nil && out.turn {
		out.pair.sendTurn.Unlock()
	}
	if in != nil && in.turn {
		in.pair.recvTurn.Unlock()
	}
	return err
}

// ended ends the transport for an error of an operation, unless it has ended
// before. It returns the cause.
func (t *Transport) ended(err error) error {
	switch err {
	case nil:
		return nil
	case errClosing:
		<-t.base.Done() // Close is just about to end it
	default:
		t.base.Abort(err)
	}
	return t.Err()
}
