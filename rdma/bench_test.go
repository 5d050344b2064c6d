package rdma_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"daisy/rdma"
	"daisy/rdma/tcp/tcptest"
	"daisy/rdma/transporttest"

	"github.com/stretchr/testify/require"
)

// BenchmarkAllReduceAlgorithm is where DirectLimit comes from: ns/op is the
// median latency seen by rank 0.
func BenchmarkAllReduceAlgorithm(b *testing.B) {
	for _, algorithm := range []struct {
		name string
		run  func(*rdma.Group, context.Context, []float32) error
	}{{"direct", (*rdma.Group).AllReduceWhole}, {"scattered", (*rdma.Group).AllReduceInParts}} {
		for _, world := range []int{2, 3, 4, 8} {
			for _, kib := range []int{4, 16, 32, 64, 128, 1024} {
				b.Run(fmt.Sprintf("%s/tcp/ranks=%d/bytes=%d", algorithm.name, world, kib<<10), func(b *testing.B) {
					ts, err := tcptest.Loopback(world, false)
					require.NoError(b, err)
					latency := make([]time.Duration, b.N)
					var wg sync.WaitGroup
					for r, t := range ts {
						g := rdma.NewGroup(t, 1)
						b.Cleanup(func() { g.Close() })
						wg.Go(func() {
							x := make([]float32, kib<<8)
							for i := range b.N {
								start := time.Now()
								if err := algorithm.run(g, context.Background(), x); err != nil {
									b.Error(err)
									return
								}
								if r == 0 {
									latency[i] = time.Since(start)
								}
							}
						})
					}
					wg.Wait()
					b.ReportMetric(float64(transporttest.Median(latency)), "ns/op")
				})
			}
		}
	}
}
