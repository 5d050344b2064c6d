package mem

import (
	"slices"
	"sync"
	"testing"
	"time"

	"daisy/rdma"
	"daisy/rdma/transporttest"

	"github.com/stretchr/testify/require"
)

// BenchmarkAgainstChannels compares an all-reduce of 16 KiB over eight ranks
// with its yardstick: eight goroutines of which each hands 16 KiB to every other
// through a bare channel and copies what it gets. No sums, no second copy, no
// errors, no cancelling. They take turns nine times in one run; "times" is the
// median of the nine ratios. It should be at most 3.
func BenchmarkAgainstChannels(b *testing.B) {
	const ranks, nBytes, rounds, pairs = 8, 16 << 10, 400, 9
	gs := make([]*rdma.Group, ranks)
	for r, t := range New(ranks) {
		gs[r] = rdma.NewGroup(t, 1)
		defer gs[r].Close()
	}
	c := newChannels(ranks, nBytes)
	for b.Loop() {
		var ratios []float64
		var ours, bare []time.Duration
		for range pairs {
			x := elapsed(ranks, func(r int) error { return transporttest.Repeat(gs[r], nBytes, rounds, nil) }, b)
			y := elapsed(ranks, func(r int) error { c.repeat(r, rounds); return nil }, b)
			ours, bare = append(ours, x/rounds), append(bare, y/rounds)
			ratios = append(ratios, float64(x)/float64(y))
		}
		slices.Sort(ratios)
		b.ReportMetric(ratios[pairs/2], "times")
		b.ReportMetric(float64(transporttest.Median(ours)), "all-reduce-ns")
		b.ReportMetric(float64(transporttest.Median(bare)), "channels-ns")
		b.ReportMetric(0, "ns/op")
	}
}

// elapsed runs f for every rank at once.
func elapsed(ranks int, f func(r int) error, b *testing.B) time.Duration {
	start := time.Now()
	var wg sync.WaitGroup
	for r := range ranks {
		wg.Go(func() {
			if err := f(r); err != nil {
				b.Error(err)
			}
		})
	}
	wg.Wait()
	return time.Since(start)
}

// channels is the yardstick: one channel per direction of each pair.
type channels struct {
	pipes   [][]chan []byte // from, to
	out, in [][]byte
}

func newChannels(ranks, nBytes int) *channels {
	c := &channels{}
	for range ranks {
		var row []chan []byte
		for range ranks {
			row = append(row, make(chan []byte, 1))
		}
		c.pipes = append(c.pipes, row)
		c.out = append(c.out, make([]byte, nBytes))
		c.in = append(c.in, make([]byte, ranks*nBytes))
	}
	return c
}

func (c *channels) repeat(r, rounds int) {
	n := len(c.out[r])
	for range rounds {
		for step := 1; step < len(c.pipes); step++ {
			c.pipes[r][(r+step)%len(c.pipes)] <- c.out[r]
		}
		for step := 1; step < len(c.pipes); step++ {
			from := (r + len(c.pipes) - step) % len(c.pipes)
			copy(c.in[r][from*n:][:n], <-c.pipes[from][r])
		}
	}
}

// TestChannels: the yardstick does what it says.
func TestChannels(t *testing.T) {
	c := newChannels(3, 4)
	for r := range c.out {
		copy(c.out[r], []byte{byte(r), 1, 2, byte(10 * r)})
	}
	var wg sync.WaitGroup
	for r := range c.out {
		wg.Go(func() { c.repeat(r, 5) })
	}
	wg.Wait()
	require.Equal(t, []byte{0, 0, 0, 0, 1, 1, 2, 10, 2, 1, 2, 20}, c.in[0])
	require.Equal(t, []byte{0, 1, 2, 0, 1, 1, 2, 10, 0, 0, 0, 0}, c.in[2])
}
