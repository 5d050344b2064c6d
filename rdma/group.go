package rdma

import (
	"context"
	"fmt"
	"sync"
)

// A Group is this process's membership in a set of ranks, for one epoch. See
// the package documentation for what it guarantees.
//
// Every method that takes a context may block until all ranks concerned have
// made the same call; with no deadline it waits without using the processor.
// A context that is done before the operation starts makes it return the
// context's error and leaves the group as it was. One that is cancelled while
// the operation runs ends the group on every rank: the caller gets an error
// that matches the context's, the others a *RemoteError.
//
// After the group has ended, all methods return its cause at once, and the
// buffers of the operation that failed hold anything. Buffers belong to the
// group during a call only.
type Group struct {
	transport       Transport
	epoch           uint64
	rank, worldSize int
	wholeLimit      int

	collective lane     // guards all up to line
	seq        uint32   // collectives so far
	memory     memory   // what collectives work in
	outs, ins  [][]byte // by rank: what the collective sends and receives
	line       *line    // nil where every pair is connected

	closing sync.Once

	out, in []pairLane // by rank: Send and Recv
}

// A pairLane orders and counts the messages in one direction of one pair.
type pairLane struct {
	lane
	seq uint32
}

// NewGroup makes a group over a transport, which belongs to the group from then
// on. The epoch is for the callers: ranks of different epochs are kept apart by
// the transport.
func NewGroup(t Transport, epoch uint64) *Group {
	g := &Group{transport: t, epoch: epoch, rank: t.Rank(), worldSize: t.WorldSize(),
		wholeLimit: WholeLimitOf(t)}
	g.collective.init(g)
	g.outs = make([][]byte, g.worldSize)
	g.ins = make([][]byte, g.worldSize)
	if topology, ok := t.(Topology); ok {
		if order, ring := findLine(topology, g.worldSize); order != nil {
			g.line = newLine(g, order, ring)
		}
	}
	g.out = make([]pairLane, g.worldSize)
	g.in = make([]pairLane, g.worldSize)
	for r := range g.worldSize {
		g.out[r].init(g)
		g.in[r].init(g)
	}
	return g
}

// Rank is this process's place in the group, from 0.
func (g *Group) Rank() int { return g.rank }

// WorldSize is the number of ranks.
func (g *Group) WorldSize() int { return g.worldSize }

// Epoch is the number given to NewGroup.
func (g *Group) Epoch() uint64 { return g.epoch }

// Kind names the transport in use: "mem", "tcp", "tcp+tls", "solo".
func (g *Group) Kind() string { return g.transport.Kind() }

// Done is closed when the group has ended, by Close, a lost peer or any other
// failure, also when no call is in progress.
func (g *Group) Done() <-chan struct{} { return g.transport.Done() }

// Err is nil while the group lives, then why it ended: ErrClosed after Close,
// else the first failure.
func (g *Group) Err() error { return g.transport.Err() }

// Abort ends the group on every rank for a reason of the caller's, such as a
// failed computation; the other ranks see it in a *RemoteError. It does not
// block.
func (g *Group) Abort(cause error) { g.transport.Abort(cause) }

// Close leaves the group and frees its resources. What this rank sent before
// still arrives; calls in progress return ErrClosed; other ranks fail with a
// *PeerLostError when they need this one next. It blocks a quarter of a second
// at the most, and may be called again.
func (g *Group) Close() error {
	err := g.transport.Close()
	g.collective.release()
	for r := range g.worldSize {
		g.out[r].release()
		g.in[r].release()
	}
	// The lane was free after the transport had ended: no collective runs any
	// more, and none will.
	g.closing.Do(func() {
		if g.line != nil {
			g.line.hand.stop()
		}
	})
	return err
}

// Send sends p to one rank, which must call Recv with the same length. It may
// block until then. Two ranks that both send before they receive get stuck if
// their messages are long.
func (g *Group) Send(ctx context.Context, to int, p []byte) error {
	if err := g.checkPeer(to); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	l := &g.out[to]
	err := l.enter(ctx, OpSend)
	if err == nil {
		err = g.transport.Send(to, Tag{Op: OpSend, Seq: l.seq, Bytes: uint64(len(p))}, p)
		l.seq++
		l.leave()
	}
	if err != nil {
		return fmt.Errorf("send to rank %d: %w", to, err)
	}
	return nil
}

// Recv waits for the next message from one rank and stores it in p, which has
// exactly its length.
func (g *Group) Recv(ctx context.Context, from int, p []byte) error {
	if err := g.checkPeer(from); err != nil {
		return fmt.Errorf("receive: %w", err)
	}
	l := &g.in[from]
	err := l.enter(ctx, OpSend)
	if err == nil {
		err = g.transport.Recv(from, Tag{Op: OpSend, Seq: l.seq, Bytes: uint64(len(p))}, p)
		l.seq++
		l.leave()
	}
	if err != nil {
		return fmt.Errorf("receive from rank %d: %w", from, err)
	}
	return nil
}

func (g *Group) checkPeer(r int) error {
	if r < 0 || r >= g.worldSize || r == g.rank {
		return fmt.Errorf("rank %d has no peer of rank %d in a group of %d", g.rank, r, g.worldSize)
	}
	return nil
}

// begin starts a collective of so many bytes and returns the tag of its
// messages. Unless it fails, end must follow.
func (g *Group) begin(ctx context.Context, op Op, root int, nBytes int) (Tag, error) {
	if err := g.collective.enter(ctx, op); err != nil {
		return Tag{}, named(op, err)
	}
	g.seq++
	return Tag{Op: op, Root: uint16(root), Seq: g.seq, Bytes: uint64(nBytes)}, nil
}

func (g *Group) end(op Op, err error) error {
	clear(g.outs) // what belongs to the caller again
	clear(g.ins)
	g.collective.leave()
	if err != nil {
		return fmt.Errorf("%v: %w", op, err)
	}
	return nil
}
