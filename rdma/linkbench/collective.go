package linkbench

import (
	"time"

	"daisy/rdma"
)

// collective measures one operation at one size.
func (r *run) collective(op Op, nBytes int) error {
	var each time.Duration
	for range warmUps(nBytes) {
		took, err := r.timed(op, nBytes)
		if err != nil {
			return err
		}
		each = took
	}
	times, err := r.agree(0, iterations(r.budget, each))
	if err != nil {
		return err
	}
	samples := make([]time.Duration, times)
	for i := range samples {
		if samples[i], err = r.timed(op, nBytes); err != nil {
			return err
		}
	}
	all, err := r.gather(samples)
	if err != nil {
		return err
	}
	for _, theirs := range all {
		for i := range samples {
			samples[i] = max(samples[i], theirs[i])
		}
	}
	row := Row{Op: op, Bytes: nBytes}
	row.summarize(samples)
	row.Bandwidth = busBandwidth(op, r.g.WorldSize(), nBytes, row.P50)
	r.add(row)
	return nil
}

// timed runs the operation once, after a barrier.
func (r *run) timed(op Op, nBytes int) (time.Duration, error) {
	if err := r.g.Barrier(r.ctx); err != nil {
		return 0, err
	}
	start := time.Now()
	err := r.once(op, nBytes)
	return time.Since(start), err
}

func (r *run) once(op Op, nBytes int) error {
	switch op {
	case AllReduce:
		return r.g.AllReduce(r.ctx, r.x[:nBytes/4])
	case ReduceScatter:
		return r.g.ReduceScatter(r.ctx, rdma.F32, r.x[:nBytes/4], r.floats(nBytes))
	case AllGather:
		return r.g.AllGather(r.ctx, r.ofAll(nBytes), r.p[:nBytes])
	case Broadcast:
		return r.g.Broadcast(r.ctx, 0, r.p[:nBytes])
	}
	return r.g.Barrier(r.ctx)
}

// ofAll is memory for n bytes of each rank.
func (r *run) ofAll(n int) []byte {
	if n *= r.g.WorldSize(); len(r.all) < n {
		r.all = make([]byte, n)
	}
	return r.all[:n]
}

// floats is memory for n bytes of each rank, as values.
func (r *run) floats(n int) []float32 {
	if n = n / 4 * r.g.WorldSize(); len(r.xs) < n {
		r.xs = make([]float32, n)
	}
	return r.xs[:n]
}
