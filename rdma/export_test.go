package rdma

import "context"

// The two algorithms of AllReduce, whatever the length.

func (g *Group) AllReduceDirect(ctx context.Context, x []float32) error {
	return g.with(ctx, x, g.allReduceDirect)
}

func (g *Group) AllReduceScattered(ctx context.Context, x []float32) error {
	return g.with(ctx, x, g.allReduceScattered)
}

func (g *Group) with(ctx context.Context, x []float32, f func(Tag, []float32) error) error {
	tag, err := g.begin(ctx, OpAllReduce, 0, 4*len(x))
	if err != nil {
		return err
	}
	return g.end(OpAllReduce, f(tag, x))
}
