package gguf

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Bits per weight as the quantisation formats define them; a wrong block size or byte count shows here.
func TestBitsPerWeight(t *testing.T) {
	want := map[Type]float64{
		F32: 32, F16: 16, BF16: 16, F64: 64, I8: 8, I16: 16, I32: 32, I64: 64,
		Q4_0: 4.5, Q4_1: 5, Q5_0: 5.5, Q5_1: 6, Q8_0: 8.5, Q8_1: 9,
		Q2_K: 2.625, Q3_K: 3.4375, Q4_K: 4.5, Q5_K: 5.5, Q6_K: 6.5625, Q8_K: 9.125,
		IQ1S: 1.5625, IQ1M: 1.75, IQ2XXS: 2.0625, IQ2XS: 2.3125, IQ2S: 2.5625, IQ3XXS: 3.0625, IQ3S: 3.4375,
		IQ4NL: 4.5, IQ4XS: 4.25, TQ1_0: 1.6875, TQ2_0: 2.0625, MXFP4: 4.25,
	}
	for i := range Type(len(typeTable)) {
		bits, ok := want[i]
		assert.Equal(t, ok, i.Known(), "%d", i)
		if ok {
			assert.InDelta(t, bits, float64(i.BlockBytes()*8)/float64(i.BlockSize()), 1e-9, i.String())
		}
	}
	assert.Equal(t, "q4_K", Q4_K.String())
	assert.Equal(t, "type 4", Type(4).String())
	assert.Zero(t, Type(99).BlockSize())
	assert.Zero(t, Type(99).BlockBytes())
}
