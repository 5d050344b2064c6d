package gguf

import "fmt"

// Type is a tensor's element type, numbered as ggml numbers it.
type Type uint32

// The element types of ggml. The missing numbers are types that ggml has removed.
const (
	F32    Type = 0
	F16    Type = 1
	Q4_0   Type = 2
	Q4_1   Type = 3
	Q5_0   Type = 6
	Q5_1   Type = 7
	Q8_0   Type = 8
	Q8_1   Type = 9
	Q2_K   Type = 10
	Q3_K   Type = 11
	Q4_K   Type = 12
	Q5_K   Type = 13
	Q6_K   Type = 14
	Q8_K   Type = 15
	IQ2XXS Type = 16
	IQ2XS  Type = 17
	IQ3XXS Type = 18
	IQ1S   Type = 19
	IQ4NL  Type = 20
	IQ3S   Type = 21
	IQ2S   Type = 22
	IQ4XS  Type = 23
	I8     Type = 24
	I16    Type = 25
	I32    Type = 26
	I64    Type = 27
	F64    Type = 28
	IQ1M   Type = 29
	BF16   Type = 30
	TQ1_0  Type = 34
	TQ2_0  Type = 35
	MXFP4  Type = 39
)

// typeInfo is a type's name in ggml's spelling, the elements of one block and the block's bytes.
type typeInfo struct {
	name  string
	block int64
	bytes int64
}

var typeTable = [...]typeInfo{
	F32: {"f32", 1, 4}, F16: {"f16", 1, 2}, BF16: {"bf16", 1, 2}, F64: {"f64", 1, 8},
	I8: {"i8", 1, 1}, I16: {"i16", 1, 2}, I32: {"i32", 1, 4}, I64: {"i64", 1, 8},
	Q4_0: {"q4_0", 32, 18}, Q4_1: {"q4_1", 32, 20}, Q5_0: {"q5_0", 32, 22}, Q5_1: {"q5_1", 32, 24},
	Q8_0: {"q8_0", 32, 34}, Q8_1: {"q8_1", 32, 36},
	Q2_K: {"q2_K", 256, 84}, Q3_K: {"q3_K", 256, 110}, Q4_K: {"q4_K", 256, 144}, Q5_K: {"q5_K", 256, 176},
	Q6_K: {"q6_K", 256, 210}, Q8_K: {"q8_K", 256, 292},
	IQ2XXS: {"iq2_xxs", 256, 66}, IQ2XS: {"iq2_xs", 256, 74}, IQ2S: {"iq2_s", 256, 82},
	IQ3XXS: {"iq3_xxs", 256, 98}, IQ3S: {"iq3_s", 256, 110},
	IQ1S: {"iq1_s", 256, 50}, IQ1M: {"iq1_m", 256, 56},
	IQ4NL: {"iq4_nl", 32, 18}, IQ4XS: {"iq4_xs", 256, 136},
	TQ1_0: {"tq1_0", 256, 54}, TQ2_0: {"tq2_0", 256, 66}, MXFP4: {"mxfp4", 32, 17},
}

// Known reports whether t is a type this package knows the size of.
func (t Type) Known() bool { return int64(t) < int64(len(typeTable)) && typeTable[t].block > 0 }

// String returns ggml's name of the type, such as "q4_K".
func (t Type) String() string {
	if !t.Known() {
		return fmt.Sprintf("type %d", uint32(t))
	}
	return typeTable[t].name
}

// BlockSize returns the elements of one quantisation block (1 for plain types), 0 for an unknown type.
func (t Type) BlockSize() int64 {
	if !t.Known() {
		return 0
	}
	return typeTable[t].block
}

// BlockBytes returns the bytes of one block, 0 for an unknown type.
func (t Type) BlockBytes() int64 {
	if !t.Known() {
		return 0
	}
	return typeTable[t].bytes
}
