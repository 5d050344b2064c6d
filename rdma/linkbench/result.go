package linkbench

import (
	"slices"
	"time"
)

// An Op is what a row measures.
type Op string

const (
	SendRecv      Op = "send/receive"
	Barrier       Op = "barrier"
	AllReduce     Op = "all-reduce"
	ReduceScatter Op = "reduce-scatter"
	AllGather     Op = "all-gather"
	Broadcast     Op = "broadcast"
)

// Ops lists all that Run can measure, in its order.
func Ops() []Op { return []Op{SendRecv, Barrier, AllReduce, ReduceScatter, AllGather, Broadcast} }

// A Result is the same on every rank.
type Result struct {
	Transport string `json:"transport"` // rdma.Group.Kind
	Ranks     int    `json:"ranks"`
	Rows      []Row  `json:"rows"`
}

// A Row is one operation at one size. Times are in nanoseconds.
type Row struct {
	Op         Op            `json:"op"`
	Pair       *[2]int       `json:"pair,omitempty"` // the two ranks of a send/receive
	Bytes      int           `json:"bytes"`          // what one rank gives or gets
	Iterations int           `json:"iterations"`
	P50        time.Duration `json:"p50_ns"`
	P99        time.Duration `json:"p99_ns"`
	Mean       time.Duration `json:"mean_ns"`
	Min        time.Duration `json:"min_ns"`
	Max        time.Duration `json:"max_ns"`
	// Bandwidth is the bus bandwidth in bytes per second; see the package
	// documentation for the formulas. 0 for what carries nothing.
	Bandwidth float64 `json:"bus_bytes_per_second"`
}

// summarize fills the times of a row. It sorts the samples.
func (r *Row) summarize(samples []time.Duration) {
	slices.Sort(samples)
	var sum time.Duration
	for _, s := range samples {
		sum += s
	}
	r.Iterations = len(samples)
	r.P50, r.P99 = percentile(samples, 50), percentile(samples, 99)
	r.Mean = sum / time.Duration(len(samples))
	r.Min, r.Max = samples[0], samples[len(samples)-1]
}

// percentile is the smallest sample that p percent of all do not exceed.
func percentile(sorted []time.Duration, p int) time.Duration {
	return sorted[max(0, (len(sorted)*p+99)/100-1)]
}

// busBandwidth is the bytes per second that a rank's link carries; see the
// package documentation.
func busBandwidth(op Op, ranks, nBytes int, t time.Duration) float64 {
	if t <= 0 {
		return 0
	}
	n, s := float64(ranks), float64(nBytes)/t.Seconds()
	switch op {
	case AllReduce:
		return 2 * (n - 1) / n * s
	case AllGather, ReduceScatter:
		return (n - 1) / n * (n * s)
	case Broadcast:
		return s
	}
	return 0
}
