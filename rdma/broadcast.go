package rdma

import (
	"context"
	"fmt"
)

// Broadcast copies p from the rank root to p on all others. All ranks give the
// same root and length. The root may be several broadcasts ahead of the others.
func (g *Group) Broadcast(ctx context.Context, root int, p []byte) error {
	if root < 0 || root >= g.worldSize {
		return fmt.Errorf("broadcast: no rank %d in a group of %d", root, g.worldSize)
	}
	tag, err := g.begin(ctx, OpBroadcast, root, len(p))
	if err != nil {
		return err
	}
	if g.rank != root {
		return g.end(OpBroadcast, g.transport.Recv(root, tag, p))
	}
	for step := 1; step < g.worldSize && err == nil; step++ {
		err = g.transport.Send(g.peerAt(step), tag, p)
	}
	return g.end(OpBroadcast, err)
}

// Barrier returns when all ranks have called it. It takes log2(N) rounds: after
// round k every rank has heard, directly or not, of the 2^k ranks before it.
func (g *Group) Barrier(ctx context.Context) error {
	tag, err := g.begin(ctx, OpBarrier, 0, 0)
	if err != nil {
		return err
	}
	for step := 1; step < g.worldSize && err == nil; step *= 2 {
		err = g.transport.SendRecv(tag, g.peerAt(step), nil, g.peerAt(g.worldSize-step), nil)
	}
	return g.end(OpBarrier, err)
}
