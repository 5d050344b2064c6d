package rdma

import (
	"context"
	"fmt"
)

// Broadcast copies p from the rank root to p on all others. All ranks give the
// same root and length. Up to the transport's EagerLimit the root may be a few
// broadcasts ahead of the others.
func (g *Group) Broadcast(ctx context.Context, root int, p []byte) error {
	return g.broadcastBy(ctx, g.chooseBroadcast(len(p)), root, p)
}

func (g *Group) broadcastBy(ctx context.Context, a algorithm, root int, p []byte) error {
	if root < 0 || root >= g.worldSize {
		return fmt.Errorf("broadcast: no rank %d in a group of %d", root, g.worldSize)
	}
	tag, err := g.begin(ctx, OpBroadcast, root, len(p))
	if err != nil {
		return err
	}
	switch {
	case g.worldSize == 1:
	case g.line != nil:
		err = g.line.broadcast(tag, p)
	case a == whole:
		err = g.broadcastWhole(tag, p)
	default:
		err = g.broadcastInParts(tag, p)
	}
	return g.end(OpBroadcast, err)
}

func (g *Group) broadcastWhole(tag Tag, p []byte) error {
	root := int(tag.Root)
	if g.rank != root {
		return g.transport.Recv(root, tag, p)
	}
	for step := 1; step < g.worldSize; step++ {
		if err := g.transport.Send(g.peerAt(step), tag, p); err != nil {
			return err
		}
	}
	return nil
}

// broadcastInParts gives every rank its share, which they then exchange.
func (g *Group) broadcastInParts(tag Tag, p []byte) error {
	root := int(tag.Root)
	for r := range g.ins {
		from, to := Share(len(p), g.worldSize, r)
		g.ins[r] = p[from:to]
	}
	if g.rank != root {
		if err := g.transport.Recv(root, tag, g.ins[g.rank]); err != nil {
			return err
		}
		return g.gather(tag)
	}
	for step := 1; step < g.worldSize; step++ {
		r := g.peerAt(step)
		if err := g.transport.Send(r, tag, g.ins[r]); err != nil {
			return err
		}
	}
	return g.gather(tag)
}

// Barrier returns when all ranks have called it. Where all are connected it
// takes log2(N) rounds: after round k every rank has heard, directly or not, of
// the 2^k ranks before it.
func (g *Group) Barrier(ctx context.Context) error {
	tag, err := g.begin(ctx, OpBarrier, 0, 0)
	if err != nil {
		return err
	}
	if g.line != nil {
		clear(g.ins)
		return g.end(OpBarrier, g.line.gather(tag, g.ins))
	}
	for step := 1; step < g.worldSize && err == nil; step *= 2 {
		err = g.transport.SendRecv(tag, g.peerAt(step), nil, g.peerAt(g.worldSize-step), nil)
	}
	return g.end(OpBarrier, err)
}
