package transporttest

import (
	"math"

	"daisy/rdma"
)

// Round is the value nearest to x that the wire type has, ties to even: the
// definition of the conversions written down plainly, to compare with. Beyond
// the largest value it is an infinity, where half a step beyond counts as
// beyond.
func Round(w rdma.Wire, x float32) float32 {
	bits, minExp, largest := 0, 0, 0.0
	switch w {
	case rdma.F16:
		bits, minExp, largest = 11, -14, 65504
	case rdma.BF16:
		bits, minExp, largest = 8, -126, 0x1.fep127
	default:
		return x
	}
	v := float64(x)
	if v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return x
	}
	exp := int(math.Float64bits(v)>>52&0x7ff) - 1023 // no float32 is subnormal here
	step := math.Float64frombits(uint64(max(exp, minExp)-bits+1+1023) << 52)
	r := math.RoundToEven(v/step) * step
	if math.Abs(r) > largest {
		r = math.Inf(int(math.Copysign(1, r)))
	}
	return float32(math.Copysign(r, v)) // a negative zero stays one
}

func roundAll(w rdma.Wire, x []float32) []float32 {
	if w == rdma.F32 {
		return x
	}
	y := make([]float32, len(x))
	for i, v := range x {
		y[i] = Round(w, v)
	}
	return y
}
