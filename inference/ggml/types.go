package ggml

// #include "api.h"
import "C"

// Type is a tensor's element type: ggml's own number, which GGUF files use too.
type Type uint32

// The types that code names; weights may have any other that ggml knows.
const (
	F32 Type = C.GGML_TYPE_F32
	F16 Type = C.GGML_TYPE_F16
	Q8  Type = C.GGML_TYPE_Q8_0
	I32 Type = C.GGML_TYPE_I32
	I64 Type = C.GGML_TYPE_I64
)

// BlockSize is the number of elements in a block: 1 for plain types.
func (t Type) BlockSize() int { return int(C.ggml_blck_size(uint32(t))) }

// RowBytes is the size of n elements; n is a multiple of BlockSize.
func (t Type) RowBytes(n int) int { return int(C.ggml_row_size(uint32(t), C.int64_t(n))) }

// Quantize turns rows of n float32 values each into type t. It is for tests and
// needs no importance matrix only for the types that do without.
func Quantize(t Type, src []float32, n int) []byte {
	rows := len(src) / n
	dst := make([]byte, rows*t.RowBytes(n))
	C.ggml_quantize_chunk(uint32(t), (*C.float)(&src[0]), ptr(dst), 0, C.int64_t(rows), C.int64_t(n), nil)
	return dst
}
