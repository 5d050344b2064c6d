package plan

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// Every element is in exactly one range, whatever is dealt to however many.
func TestDealCoversEverythingOnce(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := 1; n <= 130; n++ {
		for world := 1; world <= 16; world++ {
			for _, unit := range []int{1, 3, 8} {
				shares := make([]float64, world)
				for i := range shares {
					shares[i] = 0.001 + rng.Float64()*100
				}
				ranges, err := Deal(n, unit, shares)
				if (n+unit-1)/unit < world {
					require.ErrorIs(t, err, ErrTooManyRanks)
					continue
				}
				require.NoError(t, err)
				next := 0
				for _, r := range ranges {
					require.Equal(t, next, r.Lo)
					require.Greater(t, r.Hi, r.Lo)
					require.Zero(t, r.Lo%unit)
					next = r.Hi
				}
				require.Equal(t, n, next)
			}
		}
	}
}

func TestDealFollowsShares(t *testing.T) {
	ranges, err := Deal(100, 1, []float64{3, 1})
	require.NoError(t, err)
	require.Equal(t, []Range{{0, 75}, {75, 100}}, ranges)
}

func TestDealRefusesNonsense(t *testing.T) {
	for _, shares := range [][]float64{{}, {0, 1}, {-1, 2}} {
		_, err := Deal(10, 1, shares)
		require.Error(t, err)
	}
}

// The slowest rank decides: eight units for shares of 0.56 and 0.44 (4.48 and 3.52)
// are 5 and 3, since 4 would take the second longer than 5 the first.
func TestDealHelpsTheSlowest(t *testing.T) {
	ranges, err := Deal(8, 1, []float64{0.56, 0.44})
	require.NoError(t, err)
	require.Equal(t, []Range{{0, 5}, {5, 8}}, ranges)
}

// Ranks meet after each half of a layer, so feed-forward columns are dealt out by
// speed alone, whatever came of the heads.
func TestHalvesAreDealtApart(t *testing.T) {
	s := Shape{KVHeads: 3, KVHeadUnit: 1, FFN: 1536, FFNUnit: 32, Vocab: 49152, VocabUnit: 8}
	shards, err := s.Deal([]float64{1, 1})
	require.NoError(t, err)
	require.Equal(t, 2, shards[0].KVHeads.Len())
	require.Equal(t, 768, shards[0].FFN.Len())
}
