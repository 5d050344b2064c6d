package rdma

import (
	"fmt"
	"unsafe"
)

// Wire is how the float32 values of a sum travel between ranks. Sums are formed
// in float32 whatever it is. With F16 and BF16 every contribution is rounded to
// that type first, a rank's own as well as the others'.
type Wire uint8

const (
	F32  Wire = 0 // as they are
	F16  Wire = 1 // IEEE 754 binary16: 11 bits, up to 65504
	BF16 Wire = 2 // the upper half of a float32: 8 bits, its whole range
)

// Bytes is the length of one value.
func (w Wire) Bytes() int {
	if w == F32 {
		return 4
	}
	return 2
}

// String is "f32", "f16" or "bf16".
func (w Wire) String() string {
	switch w {
	case F32:
		return "f32"
	case F16:
		return "f16"
	case BF16:
		return "bf16"
	}
	return fmt.Sprintf("wire type %d", uint8(w))
}

func (w Wire) check() error {
	if w > BF16 {
		return fmt.Errorf("there is no %v", w)
	}
	return nil
}

// pack stores src in dst as it travels.
func (w Wire) pack(dst []byte, src []float32) {
	switch w {
	case F32:
		copy(dst, asBytes(src))
	case F16:
		packF16(halves(dst), src)
	case BF16:
		packBF16(halves(dst), src)
	}
}

// unpack is the reverse of pack, and exact.
func (w Wire) unpack(dst []float32, src []byte) {
	switch w {
	case F32:
		copy(asBytes(dst), src)
	case F16:
		unpackF16(dst, halves(src))
	case BF16:
		unpackBF16(dst, halves(src))
	}
}

// addTo adds the values in src to dst.
func (w Wire) addTo(dst []float32, src []byte) {
	switch w {
	case F32:
		add(dst, dst, floats(src))
	case F16:
		addF16(dst, halves(src))
	case BF16:
		addBF16(dst, halves(src))
	}
}

// addInto adds the values in src to those in dst and packs them again.
func (w Wire) addInto(dst, src []byte) {
	if w == F32 {
		add(floats(dst), floats(dst), floats(src))
		return
	}
	var block [512]float32
	for done := 0; done < len(dst); {
		n := min(2*len(block), len(dst)-done)
		acc, d := block[:n/2], dst[done:][:n]
		w.unpack(acc, d)
		w.addTo(acc, src[done:][:n])
		w.pack(d, acc)
		done += n
	}
}

// The views below are the memory itself, not copies. What they are made of is
// aligned: it comes from a []float32 or from the group's scratch memory.

func floats(b []byte) []float32 {
	if len(b) < 4 {
		return nil
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}

func halves(b []byte) []uint16 {
	if len(b) < 2 {
		return nil
	}
	return unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/2)
}
