package rdma_test

import (
	"testing"

	"daisy/rdma"
	"daisy/rdma/mem"

	"github.com/stretchr/testify/require"
)

// pairs is a topology given by its direct pairs.
type pairs [][2]int

func (p pairs) Direct(a, b int) bool {
	for _, c := range p {
		if c == [2]int{a, b} || c == [2]int{b, a} {
			return true
		}
	}
	return false
}

func TestFindLine(t *testing.T) {
	for _, c := range []struct {
		name  string
		world int
		pairs pairs
		order []int
		ring  bool
	}{
		{"one rank", 1, nil, nil, false},
		{"two ranks", 2, pairs{{0, 1}}, nil, false},
		{"complete", 3, pairs{{0, 1}, {1, 2}, {0, 2}}, nil, false},
		{"open chain", 3, pairs{{0, 1}, {1, 2}}, []int{0, 1, 2}, false},
		{"chain in another order", 4, pairs{{2, 0}, {0, 3}, {3, 1}}, []int{1, 3, 0, 2}, false},
		{"closed chain", 4, pairs{{0, 1}, {1, 2}, {2, 3}, {3, 0}}, []int{0, 1, 2, 3}, true},
		{"ring with a chord", 5, pairs{{0, 2}, {2, 4}, {4, 1}, {1, 3}, {3, 0}, {0, 4}}, []int{0, 2, 4, 1, 3}, true},
		{"star", 4, pairs{{0, 1}, {0, 2}, {0, 3}}, nil, false},
		{"two islands", 4, pairs{{0, 1}, {2, 3}}, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			order, ring := rdma.FindLine(c.pairs, c.world)
			require.Equal(t, c.order, order)
			require.Equal(t, c.ring, ring)
		})
	}
}

// everyOther connects ranks of different parity only, one of them too many for a
// ring or chain: the search must give up.
type everyOther struct{}

func (everyOther) Direct(a, b int) bool { return a%2 == 0 && b%2 == 1 || a%2 == 1 && b%2 == 0 }

type uneven struct{}

func (uneven) Direct(a, b int) bool { return (a < 9) != (b < 9) }

func TestFindLineBounded(t *testing.T) {
	order, ring := rdma.FindLine(everyOther{}, 24)
	require.Len(t, order, 24)
	require.True(t, ring)
	order, _ = rdma.FindLine(uneven{}, 24) // 9 and 15: hopeless
	require.Nil(t, order)
}

type starred struct{ rdma.Transport }

func (starred) Direct(a, b int) bool { return a == 0 || b == 0 }

// TestStar: where there is no line, collectives go the transport's own ways.
func TestStar(t *testing.T) {
	ts := mem.New(4)
	errs := make(chan error, len(ts))
	for _, m := range ts {
		g := rdma.NewGroup(starred{m}, 1)
		defer g.Close()
		go func() {
			x := []float32{1, 2, 3}
			err := g.AllReduce(t.Context(), x)
			if err == nil && x[2] != 12 {
				t.Errorf("sum is %v", x)
			}
			errs <- err
		}()
	}
	for range ts {
		require.NoError(t, <-errs)
	}
}
