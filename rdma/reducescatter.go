package rdma

import (
	"context"
	"fmt"
)

// ReduceScatter sums in over all ranks and stores in out this rank's share of
// the sum, in[from:to] by Share. All ranks give the same length of in and the
// same w; out has the length of the share. out may be that part of in, the rest
// of which stays as it is.
//
// The sum is formed in float32 of contributions that are all rounded to w; on a
// ring or chain, partial sums are rounded at every rank that they pass. With
// one rank nothing travels and nothing is rounded.
func (g *Group) ReduceScatter(ctx context.Context, w Wire, out, in []float32) error {
	if err := w.check(); err != nil {
		return err
	}
	from, to := Share(len(in), g.worldSize, g.rank)
	if len(out) != to-from {
		return fmt.Errorf("reduce-scatter: rank %d of %d has %d of %d values, not %d",
			g.rank, g.worldSize, to-from, len(in), len(out))
	}
	tag, err := g.begin(ctx, OpReduceScatter.as(w), 0, len(in)*w.Bytes())
	if err != nil {
		return err
	}
	if g.worldSize == 1 {
		copy(out, in)
	} else {
		nBytes := len(in) * w.Bytes()
		g.memory.reset(slot(nBytes) + g.reduceMemory(nBytes))
		err = g.reduceParts(tag, w, out, g.image(w, in))
	}
	return g.end(tag.Op, err)
}

// reduceMemory is how much memory reduceParts takes for an image of so many
// bytes.
func (g *Group) reduceMemory(nBytes int) int {
	return max(4, g.worldSize) * slot(nBytes/g.worldSize+4)
}

// reduceParts leaves in mine this rank's share of the sum of all ranks' images.
// mine may be in the memory of the image.
func (g *Group) reduceParts(tag Tag, w Wire, mine []float32, image []byte) error {
	size := w.Bytes()
	for r := range g.outs {
		from, to := Share(len(image)/size, g.worldSize, r)
		g.outs[r] = image[from*size : to*size]
	}
	if g.line != nil {
		return g.line.reduce(tag, w, mine, g.outs)
	}
	for r := range g.ins {
		if r == g.rank {
			g.ins[r] = g.outs[r]
		} else {
			g.ins[r] = g.memory.take(len(mine) * size)
		}
	}
	err := g.exchange(tag)
	if err == nil {
		w.sum(mine, g.ins)
	}
	return err
}
