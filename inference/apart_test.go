package inference

import (
	"testing"

	"daisy/inference/modeltest"
	"daisy/rdma"

	"github.com/stretchr/testify/require"
)

// A rank apart holds what it would hold in a group, and computes without one.
func TestApart(t *testing.T) {
	path := tiny(t, modeltest.Options{Heads: 8, KVHeads: 4, FFN: 256})
	shares := []float64{3, 1}
	for r, e := range cluster(t, path, 2, Options{Shares: shares}) {
		apart, err := Load(t.Context(), path, Options{Threads: 1, Shares: shares, Apart: &Seat{r, 2}})
		require.NoError(t, err)
		t.Cleanup(func() { apart.Close() })
		require.Equal(t, e.Info().WeightBytes, apart.Info().WeightBytes)
		require.Equal(t, e.Info().CacheBytes, apart.Info().CacheBytes)
		prefill, decode, err := apart.Measure(t.Context(), 0, 1, 20, 10)
		require.NoError(t, err)
		require.Positive(t, prefill)
		require.Positive(t, decode)
	}
}

func TestApartRefuses(t *testing.T) {
	path := tiny(t, modeltest.Options{Layers: 4})
	staged := stagedPlans(t, path, false)[0]
	for _, o := range []Options{
		{Apart: &Seat{2, 2}},
		{Apart: &Seat{-1, 2}},
		{Apart: &Seat{0, 0}},
		{Apart: &Seat{0, staged.World()}, Plan: &staged},
		{Apart: &Seat{0, 2}, Group: rdma.Solo()},
	} {
		_, err := Load(t.Context(), path, o)
		require.Error(t, err)
	}
}
