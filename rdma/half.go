package rdma

import "math"

// Conversions between float32 and the 16-bit types, without tables. Narrowing
// rounds to nearest, ties to even; beyond the largest value it gives an
// infinity. A NaN stays a NaN of the same sign and upper payload, made quiet
// when narrowed. Widening is exact.
//
// The slice versions work on groups of four of which no value depends on
// another, so that their steps overlap in the processor, and compile without
// bounds checks.

// toF16 goes three ways at once and picks one, since a branch on the size of
// values that are near the limit of the normal numbers is mispredicted often.
func toF16(f float32) uint16 {
	b := math.Float32bits(f)
	abs := b &^ (1 << 31)
	// Normal numbers: another exponent bias, and half a unit (less one for
	// those that tie down) before the cut. A carry goes into the exponent, up
	// to infinity.
	h := (abs + 0xfff + abs>>13&1 - 112<<23) >> 13
	// Subnormal numbers: the unit in the last place of 0.5 is the smallest of
	// them, 2^-24, so the adder rounds.
	sub := math.Float32bits(math.Float32frombits(abs)+0.5) - 0x3f000000
	if abs < 0x38800000 { // 2^-14
		h = sub
	}
	if abs >= 0x47800000 { // 2^16
		h = 0x7c00
	}
	if abs > 0x7f800000 {
		h = abs>>13&0x3ff | 0x7e00
	}
	return uint16(h | b>>16&0x8000)
}

func fromF16(h uint16) float32 {
	abs := uint32(h) & 0x7fff
	b := abs<<13 + 112<<23
	// Subnormal numbers count units of 2^-24.
	sub := math.Float32bits(math.Float32frombits(abs|0x3f000000) - 0.5)
	if abs < 0x400 {
		b = sub
	}
	if abs >= 0x7c00 {
		b = abs<<13 | 0x7f800000
	}
	return math.Float32frombits(b | uint32(h)&0x8000<<16)
}

func toBF16(f float32) uint16 {
	b := math.Float32bits(f)
	h := (b + 0x7fff + b>>16&1) >> 16
	if b&^(1<<31) > 0x7f800000 {
		h = b>>16 | 0x40
	}
	return uint16(h)
}

func fromBF16(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

func packF16(dst []uint16, src []float32) {
	src = src[:len(dst)]
	for len(dst) >= 4 && len(src) >= 4 {
		d, s := (*[4]uint16)(dst), (*[4]float32)(src)
		d[0], d[1], d[2], d[3] = toF16(s[0]), toF16(s[1]), toF16(s[2]), toF16(s[3])
		dst, src = dst[4:], src[4:]
	}
	for i, v := range src {
		dst[i] = toF16(v)
	}
}

func packBF16(dst []uint16, src []float32) {
	src = src[:len(dst)]
	for len(dst) >= 4 && len(src) >= 4 {
		d, s := (*[4]uint16)(dst), (*[4]float32)(src)
		d[0], d[1], d[2], d[3] = toBF16(s[0]), toBF16(s[1]), toBF16(s[2]), toBF16(s[3])
		dst, src = dst[4:], src[4:]
	}
	for i, v := range src {
		dst[i] = toBF16(v)
	}
}

func unpackF16(dst []float32, src []uint16) {
	src = src[:len(dst)]
	for len(dst) >= 4 && len(src) >= 4 {
		d, s := (*[4]float32)(dst), (*[4]uint16)(src)
		d[0], d[1], d[2], d[3] = fromF16(s[0]), fromF16(s[1]), fromF16(s[2]), fromF16(s[3])
		dst, src = dst[4:], src[4:]
	}
	for i, v := range src {
		dst[i] = fromF16(v)
	}
}

func unpackBF16(dst []float32, src []uint16) {
	src = src[:len(dst)]
	for len(dst) >= 4 && len(src) >= 4 {
		d, s := (*[4]float32)(dst), (*[4]uint16)(src)
		d[0], d[1], d[2], d[3] = fromBF16(s[0]), fromBF16(s[1]), fromBF16(s[2]), fromBF16(s[3])
		dst, src = dst[4:], src[4:]
	}
	for i, v := range src {
		dst[i] = fromBF16(v)
	}
}

func addF16(dst []float32, src []uint16) {
	src = src[:len(dst)]
	for len(dst) >= 4 && len(src) >= 4 {
		d, s := (*[4]float32)(dst), (*[4]uint16)(src)
		d[0] += fromF16(s[0])
		d[1] += fromF16(s[1])
		d[2] += fromF16(s[2])
		d[3] += fromF16(s[3])
		dst, src = dst[4:], src[4:]
	}
	for i, v := range src {
		dst[i] += fromF16(v)
	}
}

func addBF16(dst []float32, src []uint16) {
	src = src[:len(dst)]
	for len(dst) >= 4 && len(src) >= 4 {
		d, s := (*[4]float32)(dst), (*[4]uint16)(src)
		d[0] += fromBF16(s[0])
		d[1] += fromBF16(s[1])
		d[2] += fromBF16(s[2])
		d[3] += fromBF16(s[3])
		dst, src = dst[4:], src[4:]
	}
	for i, v := range src {
		dst[i] += fromBF16(v)
	}
}
