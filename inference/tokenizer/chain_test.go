package tokenizer

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// tableJoiner joins by a random table of ids; costs may tie.
type tableJoiner map[[2]int32]struct {
	id   int32
	cost float32
}

func (j tableJoiner) join(l, r *link) (int32, float32, bool) {
	v, ok := j[[2]int32{l.id, r.id}]
	return v.id, v.cost, ok
}

// byScanning merges as the definition says: look for the cheapest leftmost pair, join it, start again.
func byScanning(ids []int32, j tableJoiner) []int32 {
	for {
		at, best := -1, struct {
			id   int32
			cost float32
		}{}
		for i := 0; i+1 < len(ids); i++ {
			if v, ok := j[[2]int32{ids[i], ids[i+1]}]; ok && (at < 0 || v.cost < best.cost) {
				at, best.id, best.cost = i, v.id, v.cost
			}
		}
		if at < 0 {
			return ids
		}
		ids = append(append(append([]int32{}, ids[:at]...), best.id), ids[at+2:]...)
	}
}

func TestChainMergesAsDefined(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		j := tableJoiner{}
		for range rng.IntN(60) {
			j[[2]int32{rng.Int32N(8), rng.Int32N(8)}] = struct {
				id   int32
				cost float32
			}{rng.Int32N(8), float32(rng.IntN(7) - 3)}
		}
		var c chain
		var ids []int32
		for range rng.IntN(40) {
			id := rng.Int32N(8)
			ids = append(ids, id)
			c.add(1+rng.IntN(3), id)
		}
		c.merge(j)
		var got []int32
		end := int32(0)
		for part := range c.all() {
			require.Equal(t, end, part.from)
			end = part.to
			got = append(got, part.id)
		}
		require.Equal(t, c.end, end)
		require.Equal(t, byScanning(ids, j), got)
	}
}
