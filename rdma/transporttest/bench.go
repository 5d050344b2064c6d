package transporttest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"daisy/rdma"
)

// Bench measures all-reduce between ranks inside this process. ns/op is the
// median latency seen by rank 0, not the mean.
func Bench(b *testing.B, h Harness) {
	for _, world := range []int{2, 4} {
		for _, n := range []int{64, 2 << 10, 16 << 10, 256 << 10, 8 << 20} {
			b.Run(fmt.Sprintf("%s/ranks=%d/bytes=%d", h.Kind, world, n), func(b *testing.B) {
				gs := h.groups(b, world)
				b.ReportAllocs()
				b.SetBytes(int64(n))
				others := make([]func() error, 0, world)
				for _, g := range gs[1:] {
					others = append(others, start(b, func() error { return Repeat(g, n, b.N, nil) }))
				}
				latency := make([]time.Duration, b.N)
				b.ResetTimer()
				if err := Repeat(gs[0], n, b.N, latency); err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				for _, wait := range others {
					if err := wait(); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(Median(latency)), "ns/op")
			})
		}
	}
}

// Repeat all-reduces so many bytes so many times and notes how long each took,
// if there is a slice for it.
func Repeat(g *rdma.Group, nBytes, times int, latency []time.Duration) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	x := make([]float32, nBytes/4)
	for i := range times {
		t := time.Now()
		if err := g.AllReduce(ctx, x); err != nil {
			return err
		}
		if latency != nil {
			latency[i] = time.Since(t)
		}
	}
	return nil
}

// Median sorts d.
func Median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}
