package rdma

import (
	"context"
	"fmt"
)

// AllGather stores in out, on every rank, all ranks' in, one after the other by
// rank. All ranks give the same length; out is worldSize times that. in may be
// this rank's part of out.
func (g *Group) AllGather(ctx context.Context, out, in []byte) error {
	n := len(in)
	if len(out) != n*g.worldSize {
		return fmt.Errorf("all-gather: %d bytes from each of %d ranks do not make %d", n, g.worldSize, len(out))
	}
	tag, err := g.begin(ctx, OpAllGather, 0, len(out))
	if err != nil {
		return err
	}
	for r := range g.ins {
		g.ins[r] = out[r*n:][:n]
	}
	copy(g.ins[g.rank], in)
	return g.end(OpAllGather, g.gather(tag))
}

// AllGatherV is AllGather for contributions of different lengths, which every
// rank knows: parts[r] is rank r's. This rank's part is sent, the others are
// filled.
func (g *Group) AllGatherV(ctx context.Context, parts [][]byte) error {
	if len(parts) != g.worldSize {
		return fmt.Errorf("all-gather: %d parts for %d ranks", len(parts), g.worldSize)
	}
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	tag, err := g.begin(ctx, OpAllGather, 0, n)
	if err != nil {
		return err
	}
	copy(g.ins, parts)
	return g.end(OpAllGather, g.gather(tag))
}

// gather brings g.ins[r] of every rank r to all others.
func (g *Group) gather(tag Tag) error {
	if g.worldSize == 1 {
		return nil
	}
	if g.line != nil {
		return g.line.gather(tag, g.ins)
	}
	for r := range g.outs {
		g.outs[r] = g.ins[g.rank]
	}
	return g.exchange(tag)
}
