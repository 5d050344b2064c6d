package rdma_test

import (
	"math"
	"testing"

	"daisy/rdma"
	"daisy/rdma/transporttest"

	"github.com/stretchr/testify/require"
)

// TestWiden compares all 65536 values of both types with their definition.
func TestWiden(t *testing.T) {
	for h := range 1 << 16 {
		sign := 1 - 2*float64(h>>15)
		exp, frac := h>>10&31, float64(h&1023)
		want := sign * math.Ldexp(1+frac/1024, exp-15)
		switch {
		case exp == 31 && frac == 0:
			want = math.Inf(int(sign))
		case exp == 31:
			want = math.NaN()
		case exp == 0:
			want = math.Copysign(math.Ldexp(frac, -24), sign)
		}
		requireSame(t, float32(want), rdma.FromF16(uint16(h)), "f16 %#04x", h)
		require.Equal(t, uint32(h)<<16, math.Float32bits(rdma.FromBF16(uint16(h))))
	}
}

// requireSame compares bits; one NaN is as good as another of the same sign.
func requireSame(t *testing.T, want, got float32, format string, args ...any) {
	t.Helper()
	if math.Float32bits(want) != math.Float32bits(got) && !(want != want && got != got) {
		require.Failf(t, "differs", "%x instead of %x: "+format, append([]any{got, want}, args...)...)
	}
}

// TestNarrow: all values of the narrow type, the middle between each and the
// next, and what lies just beside either, for both signs.
func TestNarrow(t *testing.T) {
	for h := range 1 << 16 {
		f, b := rdma.FromF16(uint16(h)), rdma.FromBF16(uint16(h))
		if f == f {
			require.Equal(t, uint16(h), rdma.ToF16(f))
			around(t, rdma.F16, f, 1<<12)
		} else {
			require.Equal(t, uint16(h|0x200), rdma.ToF16(f)) // quiet
		}
		if b == b {
			require.Equal(t, uint16(h), rdma.ToBF16(b))
			around(t, rdma.BF16, b, 1<<15)
		} else {
			require.Equal(t, uint16(h|0x40), rdma.ToBF16(b))
		}
	}
}

// around checks values of which the bits are half a unit of the normal numbers
// from those of f, or a quarter or three, and their neighbours.
func around(t *testing.T, w rdma.Wire, f float32, half uint32) {
	t.Helper()
	for _, d := range []uint32{1, half/2 - 1, half / 2, half / 2 * 3, half - 1, half, half + 1, 2*half - 1} {
		checkNarrow(t, w, math.Float32frombits(math.Float32bits(f)+d))
	}
}

func checkNarrow(t *testing.T, w rdma.Wire, x float32) {
	t.Helper()
	requireSame(t, transporttest.Round(w, x), narrow(w, x), "%x in %v", x, w)
}

// narrow goes there and back.
func narrow(w rdma.Wire, x float32) float32 {
	if w == rdma.F16 {
		return rdma.FromF16(rdma.ToF16(x))
	}
	return rdma.FromBF16(rdma.ToBF16(x))
}

func TestNarrowEdges(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, x := range []float32{
		0, 65504, 65519.996, 65520, 65536, 1e30, math.MaxFloat32, inf, // to infinity at 65520
		0x1p-14, 0x1.ffcp-15, 0x1.ffep-15, 0x1.fffp-15, // where subnormal numbers of f16 begin
		0x1p-24, 0x1p-25, 0x1.000002p-25, 0x1.8p-24, 0x1.7ffffep-24, 0x1p-26,
		0x1p-126, 0x1.fffffcp-127, 0x1p-149, 0x1.fep127, 0x1.fefffep127, 0x1.ffp127, // those of bf16 are those of f32
	} {
		for _, w := range []rdma.Wire{rdma.F16, rdma.BF16} {
			checkNarrow(t, w, x)
			checkNarrow(t, w, -x)
		}
	}
	require.Equal(t, uint16(0x8000), rdma.ToF16(float32(math.Copysign(0, -1))))
	require.Equal(t, uint16(0x7bff), rdma.ToF16(65519.996))
	require.Equal(t, uint16(0x7c00), rdma.ToF16(65520))
	require.Equal(t, uint16(0x0000), rdma.ToF16(0x1p-25)) // ties to even
	require.Equal(t, uint16(0x0001), rdma.ToF16(0x1.000002p-25))
	require.Equal(t, uint16(0x7f80), rdma.ToBF16(0x1.ffp127))
	// A NaN whose payload is in the lower bits only must not become infinite.
	for _, bits := range []uint32{0x7f800001, 0x7f801fff, 0xff800001, 0x7fffffff, 0xffffffff} {
		x := math.Float32frombits(bits)
		require.True(t, math.IsNaN(float64(narrow(rdma.F16, x))))
		require.True(t, math.IsNaN(float64(narrow(rdma.BF16, x))))
		require.Equal(t, bits>>31, uint32(rdma.ToF16(x)>>15))
		require.Equal(t, bits>>31, uint32(rdma.ToBF16(x)>>15))
	}
}

// TestSlices: the unrolled versions do what the single ones do, at all lengths
// and whatever follows.
func TestSlices(t *testing.T) {
	for _, w := range []rdma.Wire{rdma.F32, rdma.F16, rdma.BF16} {
		for n := range 40 {
			x, sum := make([]float32, n), make([]float32, n)
			for i := range x {
				x[i], sum[i] = float32(i*i)-77.123456, float32(i)/3
			}
			p := make([]byte, n*w.Bytes())
			w.Pack(p, x)
			got := make([]float32, n)
			w.Unpack(got, p)
			for i := range x {
				require.Equal(t, transporttest.Round(w, x[i]), got[i])
			}
			w.AddTo(sum, p)
			for i := range x {
				require.Equal(t, float32(i)/3+got[i], sum[i])
			}
		}
	}
}

// TestSumOrder: one to nine operands are added from the left, whichever of them
// the result replaces.
func TestSumOrder(t *testing.T) {
	const n = 2500 // more than two blocks
	for operands := 1; operands <= 9; operands++ {
		for into := range operands {
			vs := make([][]byte, operands)
			want := make([]float32, n)
			var dst []float32
			for k := range vs {
				x := make([]float32, n)
				for i := range x {
					x[i] = float32(math.Sin(float64(i*9+k))) * float32(int(1)<<(i*k%23))
					if k == 0 {
						want[i] = x[i]
					} else {
						want[i] += x[i]
					}
				}
				vs[k] = rdma.AsBytes(x)
				if k == into {
					dst = x
				}
			}
			rdma.F32.Sum(dst, vs)
			require.Equal(t, want, dst, "%d operands into %d", operands, into)
		}
	}
}

func FuzzNarrow(f *testing.F) {
	for _, b := range []uint32{0, 1, 0x33000000, 0x38800000, 0x477fefff, 0x477ff000, 0x7f7fffff, 0x7f800001, 0x80000000} {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b uint32) {
		x := math.Float32frombits(b)
		checkNarrow(t, rdma.F16, x)
		checkNarrow(t, rdma.BF16, x)
	})
}

// BenchmarkWire is the speed of the conversions and sums in bytes of float32.
func BenchmarkWire(b *testing.B) {
	const n = 4096
	x, y := make([]float32, n), make([]float32, n)
	for i := range x {
		x[i] = float32(math.Sin(float64(i)) * math.Pow(2, float64(i%40-20))) // some are subnormal in f16
	}
	for _, w := range []rdma.Wire{rdma.F32, rdma.F16, rdma.BF16} {
		p := make([]byte, n*w.Bytes())
		for _, f := range []struct {
			name string
			run  func()
		}{
			{"pack", func() { w.Pack(p, x) }},
			{"unpack", func() { w.Unpack(y, p) }},
			{"add", func() { w.AddTo(y, p) }},
			{"sum8", func() { w.Sum(y, [][]byte{p, p, p, p, p, p, p, p}) }},
		} {
			b.Run(f.name+"/"+w.String(), func(b *testing.B) {
				b.SetBytes(4 * n)
				b.ReportAllocs()
				for b.Loop() {
					f.run()
				}
			})
		}
	}
}
