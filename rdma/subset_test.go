package rdma_test

import (
	"testing"

	"daisy/rdma"
	"daisy/rdma/mem"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// Two stages of two ranks sum among themselves, between operations of all.
func TestSubset(t *testing.T) {
	stages := [][]int{{0, 2}, {3, 1}}
	var g errgroup.Group
	for r, tr := range mem.New(4) {
		g.Go(func() error {
			all := rdma.NewGroup(tr, 1)
			defer all.Close()
			team, err := all.Subset(stages[r%2])
			if err != nil {
				return err
			}
			defer team.Close()
			for range 3 {
				x := []float32{float32(r)}
				if err := team.AllReduce(t.Context(), x); err != nil {
					return err
				}
				require.Equal(t, map[int]float32{0: 2, 1: 4, 2: 2, 3: 4}[r], x[0])
				if err := all.AllReduce(t.Context(), x); err != nil {
					return err
				}
				require.Equal(t, float32(12), x[0])
			}
			return all.Barrier(t.Context())
		})
	}
	require.NoError(t, g.Wait())
}

func TestSubsetRefuses(t *testing.T) {
	ts := mem.New(3)
	g := rdma.NewGroup(ts[1], 1)
	defer g.Close()
	for _, ranks := range [][]int{{}, {0, 2}, {1, 1}, {1, 3}, {-1, 1}} {
		_, err := g.Subset(ranks)
		require.Error(t, err, "%v", ranks)
	}
	team, err := g.Subset([]int{1, 2})
	require.NoError(t, err)
	require.NoError(t, team.Close())
	require.NoError(t, g.Err(), "closing a subset leaves the group")
}
