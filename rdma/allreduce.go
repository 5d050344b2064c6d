package rdma

import "context"

// AllReduce replaces x, on every rank, by the sum of all ranks' x. All ranks
// give the same length, which may be smaller than the world size.
func (g *Group) AllReduce(ctx context.Context, x []float32) error {
	return g.AllReduceAs(ctx, F32, x)
}

// AllReduceAs is AllReduce with the values in another form on their way. All
// ranks give the same one. The sum is formed in float32 of contributions that
// are all rounded to w. Above the WholeLimit the sums have to
// travel too and are rounded once more, on all ranks alike; on a ring or chain
// that happens at every rank that they pass. With one rank nothing travels and
// nothing is rounded.
func (g *Group) AllReduceAs(ctx context.Context, w Wire, x []float32) error {
	if err := w.check(); err != nil {
		return err
	}
	return g.allReduceBy(ctx, g.chooseAllReduce(len(x)*w.Bytes()), w, x)
}

func (g *Group) allReduceBy(ctx context.Context, a algorithm, w Wire, x []float32) error {
	tag, err := g.begin(ctx, OpAllReduce.as(w), 0, len(x)*w.Bytes())
	if err != nil {
		return err
	}
	switch {
	case g.worldSize == 1:
	case a == whole:
		err = g.allReduceWhole(tag, w, x)
	default:
		err = g.allReduceInParts(tag, w, x)
	}
	return g.end(tag.Op, err)
}

// allReduceWhole brings every rank's input to every other and sums in rank
// order.
func (g *Group) allReduceWhole(tag Tag, w Wire, x []float32) error {
	n := len(x) * w.Bytes()
	g.memory.reset(g.worldSize * slot(n))
	for r := range g.ins {
		if r == g.rank {
			g.ins[r] = g.image(w, x)
		} else {
			g.ins[r] = g.memory.take(n)
		}
	}
	err := g.gather(tag)
	if err == nil {
		w.sum(x, g.ins)
	}
	return err
}

// allReduceInParts sums each part on the rank that looks after it and brings
// the sums to all.
func (g *Group) allReduceInParts(tag Tag, w Wire, x []float32) error {
	size := w.Bytes()
	from, to := Share(len(x), g.worldSize, g.rank)
	mine := x[from:to]
	g.memory.reset(slot(len(x)*size) + g.reduceMemory(len(x)*size))
	image := g.image(w, x)
	if err := g.reduceParts(tag, w, mine, image); err != nil {
		return err
	}
	if w != F32 {
		w.pack(image[from*size:to*size], mine)
	}
	for r := range g.ins {
		from, to := Share(len(x), g.worldSize, r)
		g.ins[r] = image[from*size : to*size]
	}
	err := g.gather(tag)
	if err == nil && w != F32 {
		w.unpack(x, image)
	}
	return err
}

// image returns x as it travels: for F32 x itself, else a packed copy in memory
// taken for it.
func (g *Group) image(w Wire, x []float32) []byte {
	if w == F32 {
		return asBytes(x)
	}
	b := g.memory.take(len(x) * w.Bytes())
	w.pack(b, x)
	return b
}
