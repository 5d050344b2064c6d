package rdma_test

import (
	"context"
	"fmt"
	"sync"

	"daisy/rdma"
	"daisy/rdma/mem"
)

// Four ranks each add up a quarter of the numbers from 1 to 1000; afterwards
// all of them know the whole sum. With another transport they could be on four
// machines.
func Example() {
	sums := make([]float32, 4)
	var wg sync.WaitGroup
	for rank, transport := range mem.New(4) {
		wg.Go(func() {
			g := rdma.NewGroup(transport, 1)
			defer g.Close()
			x := []float32{0}
			for i := 1 + rank; i <= 1000; i += g.WorldSize() {
				x[0] += float32(i)
			}
			if err := g.AllReduce(context.Background(), x); err != nil {
				fmt.Println(err)
				return
			}
			sums[rank] = x[0]
		})
	}
	wg.Wait()
	fmt.Println(sums)
	// Output: [500500 500500 500500 500500]
}
