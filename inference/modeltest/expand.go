package modeltest

import (
	"encoding/binary"
	"math"
	"testing"

	"daisy/inference/gguf"
)

// InF32 writes a copy of the model at path whose tensors have the same values in
// F32; it returns the copy's path. The model's types are F32, Q4_1 and Q8_0.
func InF32(t testing.TB, path string) string {
	t.Helper()
	kv, tensors := contents(t, path)
	for i, x := range tensors {
		switch x.Type {
		case gguf.F32:
		case gguf.Q4_1:
			tensors[i].Data = expand(x.Data, 20, valuesQ4_1)
		case gguf.Q8_0:
			tensors[i].Data = expand(x.Data, 34, valuesQ8_0)
		default:
			t.Fatalf("%s has type %s", x.Name, x.Type)
		}
		tensors[i].Type = gguf.F32
	}
	return write(t, kv, tensors)
}

// expand turns blocks of nBytes into 32 values each.
func expand(blocks []byte, nBytes int, values func(block []byte, x *[32]float32)) []byte {
	out := make([]byte, 0, len(blocks)/nBytes*32*4)
	var x [32]float32
	for ; len(blocks) > 0; blocks = blocks[nBytes:] {
		values(blocks[:nBytes], &x)
		for _, v := range x {
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
		}
	}
	return out
}

// valuesQ4_1 reads a scale and a least value in F16, then 4 bits for each value, of
// the first 16 in the low halves of bytes.
func valuesQ4_1(b []byte, x *[32]float32) {
	scale, least := half(b), half(b[2:])
	for i, q := range b[4:] {
		x[i] = scale*float32(q&15) + least
		x[i+16] = scale*float32(q>>4) + least
	}
}

// valuesQ8_0 reads a scale in F16, then 8 bits for each value.
func valuesQ8_0(b []byte, x *[32]float32) {
	scale := half(b)
	for i, q := range b[2:] {
		x[i] = scale * float32(int8(q))
	}
}

// half reads an F16.
func half(b []byte) float32 {
	h := binary.LittleEndian.Uint16(b)
	exponent, fraction := int(h>>10&31), float64(h&1023)
	x := math.Ldexp(1024+fraction, exponent-25)
	if exponent == 0 {
		x = math.Ldexp(fraction, -24)
	}
	if h>>15 == 1 {
		x = -x
	}
	return float32(x)
}
