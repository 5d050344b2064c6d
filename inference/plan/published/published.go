// Package published writes headers of models whose shapes their makers have
// published, without their weights: what plans for Macs that are not here are
// made from.
//
// Shapes are from the config.json of deepseek-ai/DeepSeek-R1,
// moonshotai/Kimi-K2-Instruct, meta-llama/Llama-3.3-70B-Instruct and
// Qwen/Qwen2.5-7B-Instruct on huggingface.co. Tensors have the types that
// llama.cpp's Q4_K_M gives them.
package published

import (
	"io"

	"daisy/inference/gguf"
)

// Model is a model that has a header.
type Model interface {
	metadata() []gguf.KV
	tensors() []gguf.Tensor
}

// Models are the published shapes by name.
var Models = map[string]Model{
	"deepseek-r1": deepSeek2{
		name: "DeepSeek R1", layers: 61, dense: 3, dim: 7168, heads: 128, vocab: 129280, context: 163840,
		qLatent: 1536, kvLatent: 512, plain: 128, rotated: 64, value: 128, ffn: 18432, columns: 2048,
		experts: 256, used: 8, shared: 1, groups: 8, groupsUsed: 4, scale: 2.5, ropeBase: 10000, ropeFactor: 40,
	},
	"kimi-k2": deepSeek2{
		name: "Kimi K2", layers: 61, dense: 1, dim: 7168, heads: 64, vocab: 163840, context: 131072,
		qLatent: 1536, kvLatent: 512, plain: 128, rotated: 64, value: 128, ffn: 18432, columns: 2048,
		experts: 384, used: 8, shared: 1, groups: 1, groupsUsed: 1, scale: 2.827, ropeBase: 50000, ropeFactor: 32,
	},
	"llama-3.3-70b": llama{
		name: "Llama 3.3 70B", arch: "llama", layers: 80, dim: 8192, heads: 64, kvHeads: 8, headDim: 128, ffn: 28672,
		vocab: 128256, context: 131072, ropeBase: 500000,
	},
	"qwen2.5-7b": llama{
		name: "Qwen2.5 7B", arch: "qwen2", layers: 28, dim: 3584, heads: 28, kvHeads: 4, headDim: 128, ffn: 18944,
		vocab: 152064, context: 32768, ropeBase: 1000000,
	},
}

// Write writes the model's header.
func Write(w io.Writer, m Model) error { return gguf.WriteHeader(w, m.metadata(), m.tensors()) }

// moreBits tells whether Q4_K_M gives layer i of n matrices of Q6_K: the first and
// last eighth, and every third between.
func moreBits(i, n int) bool { return i < n/8 || i >= 7*n/8 || (i-n/8)%3 == 2 }
