package ggml

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// attentionCase is one call of TiledAttention. The token at index i of a sequence
// sees the positions from start+i+1-window to start+i.
type attentionCase struct {
	width, value, heads, kvHeads, tokens, positions, batches, start, window int
}

// TestTiledAttention compares with the formula in float64.
func TestTiledAttention(t *testing.T) {
	for _, c := range []attentionCase{
		{64, 64, 4, 4, 8, 32, 1, 0, 99},
		{64, 64, 9, 3, 33, 256, 1, 100, 9999},
		{128, 128, 8, 1, 17, 96, 2, 70, 9999},
		{80, 80, 2, 2, 65, 160, 1, 64, 40}, // a window that begins and ends inside tiles
		{24, 16, 6, 2, 12, 64, 3, 50, 9999},
		{256, 256, 2, 1, 100, 101, 1, 0, 1}, // each token sees itself alone
		{8, 8, 1, 1, 1, 1, 1, 0, 1},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			for _, threads := range []int{1, 3} {
				got, want := c.run(t, threads)
				for i := range want {
					require.InDelta(t, want[i], got[i], 2e-5, "element %d", i)
				}
			}
		})
	}
}

// run computes the case by ggml and by the formula.
func (c attentionCase) run(t *testing.T, threads int) (got []float32, want []float64) {
	b, err := NewCPU(threads, 0)
	require.NoError(t, err)
	defer b.Close()
	x, err := NewContext(16, 1, 16)
	require.NoError(t, err)
	defer x.Close()
	q := x.NewTensor(F32, c.width, c.heads, c.tokens, c.batches)
	k := x.NewTensor(F16, c.width, c.kvHeads, c.positions, c.batches)
	v := x.NewTensor(F16, c.value, c.kvHeads, c.positions, c.batches)
	mask := x.NewTensor(F16, c.positions, c.tokens, c.batches)
	inputs := []Tensor{q, k, v, mask}
	buffer, err := b.Memory().NewBuffer(b.Memory().PlacedBytes(inputs))
	require.NoError(t, err)
	defer buffer.Close()
	for _, in := range inputs {
		require.NoError(t, buffer.Place(in))
	}
	rng := rand.New(rand.NewPCG(1, 2))
	qs := Host[float32](q, c.width*c.heads*c.tokens*c.batches)
	for i := range qs {
		qs[i] = float32(rng.NormFloat64() * 3)
	}
	ks := halves(rng, k, c.width*c.kvHeads*c.positions*c.batches)
	vs := halves(rng, v, c.value*c.kvHeads*c.positions*c.batches)
	ms := Host[uint16](mask, c.positions*c.tokens*c.batches)
	for i := range ms {
		at, token := i%c.positions, i/c.positions%c.tokens+c.start
		ms[i] = 0
		if at > token || at <= token-c.window {
			ms[i] = 0xFC00
		}
	}

	out := x.TiledAttention(
		Heads{Tensor: q, Width: c.width, Next: 4 * c.width * c.heads, Head: 4 * c.width, Batch: 4 * c.width * c.heads * c.tokens},
		Heads{Tensor: k, Width: c.width, Next: 2 * c.width * c.kvHeads, Head: 2 * c.width, Batch: 2 * c.width * c.kvHeads * c.positions},
		Heads{Tensor: v, Width: c.value, Next: 2 * c.value * c.kvHeads, Head: 2 * c.value, Batch: 2 * c.value * c.kvHeads * c.positions},
		Heads{Tensor: mask, Next: 2 * c.positions, Batch: 2 * c.positions * c.tokens},
		c.heads, c.kvHeads, c.tokens, c.positions, c.batches, 0.2)
	g := x.NewGraph(16)
	g.Add(out)
	scratch := b.Memory().NewScratch()
	defer scratch.Close()
	_, err = scratch.Place(g)
	require.NoError(t, err)
	require.Empty(t, g.Unsupported(b))
	require.NoError(t, b.Compute(g))
	got = Host[float32](out, c.value*c.heads*c.tokens*c.batches)
	return append([]float32(nil), got...), c.formula(qs, ks, vs)
}

// halves fills a tensor with random F16 and returns the same numbers.
func halves(rng *rand.Rand, t Tensor, n int) []float64 {
	bits, out := Host[uint16](t, n), make([]float64, n)
	for i := range bits {
		m, e := rng.Uint32()&1023, 13+rng.Uint32()%3 // ±[1/4, 2)
		bits[i] = uint16(rng.Uint32()&1<<15 | e<<10 | m)
		out[i] = math.Ldexp(1+float64(m)/1024, int(e)-15)
		if bits[i]>>15 == 1 {
			out[i] = -out[i]
		}
	}
	return out
}

func (c attentionCase) formula(q []float32, k, v []float64) (out []float64) {
	group := c.heads / c.kvHeads
	for i := range c.batches * c.tokens * c.heads {
		batch, token, head := i/(c.tokens*c.heads), i/c.heads%c.tokens, i%c.heads
		first := max(0, c.start+token+1-c.window)
		sum, value := 0.0, make([]float64, c.value)
		for at := first; at <= c.start+token; at++ {
			row := (batch*c.positions+at)*c.kvHeads + head/group
			score := 0.0
			for d := range c.width {
				score += float64(q[i*c.width+d]) * k[row*c.width+d]
			}
			e := math.Exp(score * 0.2)
			sum += e
			for d := range c.value {
				value[d] += e * v[row*c.value+d]
			}
		}
		for d := range value {
			out = append(out, value[d]/sum)
		}
	}
	return out
}
