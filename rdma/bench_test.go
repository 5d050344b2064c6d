package rdma_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"daisy/rdma"
	"daisy/rdma/mem"
	"daisy/rdma/tcp/tcptest"
	"daisy/rdma/transporttest"

	"github.com/stretchr/testify/require"
)

var transports = []struct {
	name string
	open func(b *testing.B, world int) []rdma.Transport
}{
	{"mem", func(_ *testing.B, world int) []rdma.Transport { return mem.New(world) }},
	{"tcp", func(b *testing.B, world int) []rdma.Transport {
		ts, err := tcptest.Loopback(world, false)
		require.NoError(b, err)
		return ts
	}},
}

// BenchmarkAlgorithm is where the limits in choose.go come from. For every
// transport, wiring and world size it measures both algorithms at growing
// lengths, taking turns, and prints their medians as rank 0 sees them, and
// "crossover": the first length at which that in parts is the faster one.
func BenchmarkAlgorithm(b *testing.B) {
	type run = func(g *rdma.Group, x []float32) error
	ctx := context.Background()
	for _, op := range []struct {
		name           string
		whole, inParts run
		kib            []int
	}{
		{"all-reduce",
			func(g *rdma.Group, x []float32) error { return g.AllReduceWhole(ctx, x) },
			func(g *rdma.Group, x []float32) error { return g.AllReduceInParts(ctx, x) },
			[]int{1, 2, 4, 8, 16, 32, 64, 128, 256}},
		{"broadcast",
			func(g *rdma.Group, x []float32) error { return g.BroadcastWhole(ctx, 0, rdma.AsBytes(x)) },
			func(g *rdma.Group, x []float32) error { return g.BroadcastInParts(ctx, 0, rdma.AsBytes(x)) },
			[]int{32, 64, 128, 256, 512, 1024, 2048}},
	} {
		for _, t := range transports {
			for _, chain := range []bool{false, true} {
				for _, world := range []int{3, 4, 8} {
					if chain && op.name == "broadcast" || world == 3 && op.name == "broadcast" {
						continue // there is one algorithm
					}
					wiring := "mesh"
					if chain {
						wiring = "chain"
					}
					b.Run(fmt.Sprintf("%s/%s/%s/ranks=%d", op.name, t.name, wiring, world), func(b *testing.B) {
						ts := t.open(b, world)
						gs := make([]*rdma.Group, world)
						for r := range ts {
							if chain {
								ts[r] = chained{ts[r]}
							}
							gs[r] = rdma.NewGroup(ts[r], 1)
							b.Cleanup(func() { gs[r].Close() })
						}
						b.ReportMetric(0, "ns/op")
						crossover := 0
						for _, kib := range op.kib {
							medians := inTurns(b, gs, kib<<8, op.whole, op.inParts)
							b.Logf("%5d KiB: whole %8v, in parts %8v", kib, medians[0], medians[1])
							if crossover == 0 && medians[1] < medians[0] {
								crossover = kib
							}
						}
						b.ReportMetric(float64(crossover), "crossover-KiB")
					})
				}
			}
		}
	}
}

// chained is a transport of which only neighbours are connected.
type chained struct{ rdma.Transport }

func (chained) Direct(a, b int) bool { return a-b == 1 || b-a == 1 }

// inTurns runs both b.N times, nine times in turn, and returns the medians.
func inTurns(b *testing.B, gs []*rdma.Group, n int, fs ...func(*rdma.Group, []float32) error) []time.Duration {
	latency := make([][]time.Duration, len(fs))
	var wg sync.WaitGroup
	for r, g := range gs {
		wg.Go(func() {
			x := make([]float32, n)
			for i := range 9 * len(fs) {
				for range max(10, b.N) {
					start := time.Now()
					if err := fs[i%len(fs)](g, x); err != nil {
						b.Error(err)
						return
					}
					if r == 0 {
						latency[i%len(fs)] = append(latency[i%len(fs)], time.Since(start))
					}
				}
			}
		})
	}
	wg.Wait()
	var medians []time.Duration
	for _, l := range latency {
		medians = append(medians, transporttest.Median(l))
	}
	return medians
}
