package linkbench

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"daisy/rdma"
)

// Run measures what the options say. All ranks call it with the same options,
// and nothing else uses the group meanwhile. It blocks for about
// Options.Budget times operations times sizes, and send/receive times pairs.
// When it fails, the group has ended, unless the error is about the options.
func Run(ctx context.Context, g *rdma.Group, o Options) (*Result, error) {
	o, err := o.Complete()
	if err != nil {
		return nil, fmt.Errorf("link benchmark: %w", err)
	}
	if g.WorldSize() < 2 {
		return nil, fmt.Errorf("link benchmark: a group of one rank has no links")
	}
	r := &run{ctx: ctx, g: g, budget: o.Budget, result: &Result{Transport: g.Kind(), Ranks: g.WorldSize()}, progress: o.Progress}
	largest := slices.Max(o.Sizes)
	r.x = make([]float32, largest/4)
	r.p = make([]byte, largest)
	for _, op := range Ops() {
		if !slices.Contains(o.Ops, op) {
			continue
		}
		if err := r.measure(op, o.Sizes); err != nil {
			g.Abort(err) // a context that ends between two operations does not do it
			return nil, fmt.Errorf("link benchmark: %w", err)
		}
	}
	return r.result, nil
}

// run is one call of Run on one rank.
type run struct {
	ctx      context.Context
	g        *rdma.Group
	budget   time.Duration
	result   *Result
	progress func(Row)

	x   []float32 // of the largest size
	p   []byte    // as long
	all []byte    // of all ranks, as far as needed
	xs  []float32 // likewise
}

func (r *run) measure(op Op, sizes []int) error {
	switch op {
	case SendRecv:
		for a := range r.g.WorldSize() {
			for b := a + 1; b < r.g.WorldSize(); b++ {
				for _, n := range sizes {
					if err := r.pair(a, b, n); err != nil {
						return err
					}
				}
			}
		}
		return nil
	case Barrier:
		return r.collective(op, 0)
	}
	for _, n := range sizes {
		if err := r.collective(op, n); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) add(row Row) {
	r.result.Rows = append(r.result.Rows, row)
	if r.progress != nil {
		r.progress(row)
	}
}

// warmUps is how often a size runs before it counts.
func warmUps(nBytes int) int {
	if nBytes > 64<<10 {
		return 3
	}
	return 10
}

const (
	minIterations = 10
	maxIterations = 10_000
)

// iterations is how many of this duration fit into the budget.
func iterations(budget, each time.Duration) int {
	return int(min(max(int64(budget/max(each, 1)), minIterations), maxIterations))
}

// agree gives everybody the root's value.
func (r *run) agree(root int, v int) (int, error) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], uint64(v))
	if err := r.g.Broadcast(r.ctx, root, b[:]); err != nil {
		return 0, err
	}
	got := binary.LittleEndian.Uint64(b[:])
	if got > maxIterations {
		return 0, fmt.Errorf("rank %d wants %d iterations", root, got)
	}
	return int(got), nil
}

// gather gives everybody everybody's samples, by rank.
func (r *run) gather(samples []time.Duration) ([][]time.Duration, error) {
	n := len(samples)
	in := make([]byte, 8*n)
	for i, s := range samples {
		binary.LittleEndian.PutUint64(in[8*i:], uint64(s))
	}
	out := make([]byte, len(in)*r.g.WorldSize())
	if err := r.g.AllGather(r.ctx, out, in); err != nil {
		return nil, err
	}
	all := make([][]time.Duration, r.g.WorldSize())
	for rank := range all {
		all[rank] = make([]time.Duration, n)
		for i := range all[rank] {
			v := binary.LittleEndian.Uint64(out[8*(rank*n+i):])
			all[rank][i] = time.Duration(min(v, uint64(time.Hour))) // from elsewhere: no sum of them overflows
		}
	}
	return all, nil
}
