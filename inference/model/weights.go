package model

import "daisy/inference/gguf"

// weightTypes are the types that ggml's CPU kernels multiply and look up. Others
// are in the format for other uses (integers, intermediate sums); ggml would
// crash on them instead of refusing.
var weightTypes = map[gguf.Type]bool{
	gguf.F32: true, gguf.F16: true, gguf.BF16: true,
	gguf.Q4_0: true, gguf.Q4_1: true, gguf.Q5_0: true, gguf.Q5_1: true, gguf.Q8_0: true,
	gguf.Q2_K: true, gguf.Q3_K: true, gguf.Q4_K: true, gguf.Q5_K: true, gguf.Q6_K: true,
	gguf.IQ1S: true, gguf.IQ1M: true, gguf.IQ2XXS: true, gguf.IQ2XS: true, gguf.IQ2S: true,
	gguf.IQ3XXS: true, gguf.IQ3S: true, gguf.IQ4NL: true, gguf.IQ4XS: true,
	gguf.TQ1_0: true, gguf.TQ2_0: true, gguf.MXFP4: true,
}
