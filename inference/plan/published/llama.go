package published

import (
	"fmt"

	"daisy/inference/gguf"
)

// llama is the shape of a dense model of architecture llama or qwen2.
type llama struct {
	name, arch                  string
	layers, dim, heads, kvHeads int
	headDim, ffn, vocab         int
	context                     int
	ropeBase                    float32
}

func (m llama) metadata() []gguf.KV {
	kv := []gguf.KV{{Key: "general.architecture", Value: m.arch}, {Key: "general.name", Value: m.name}}
	add := func(key string, value any) { kv = append(kv, gguf.KV{Key: m.arch + "." + key, Value: value}) }
	add("block_count", uint32(m.layers))
	add("context_length", uint32(m.context))
	add("embedding_length", uint32(m.dim))
	add("feed_forward_length", uint32(m.ffn))
	add("attention.head_count", uint32(m.heads))
	add("attention.head_count_kv", uint32(m.kvHeads))
	add("attention.layer_norm_rms_epsilon", float32(1e-5))
	add("rope.dimension_count", uint32(m.headDim))
	add("rope.freq_base", m.ropeBase)
	return kv
}

func (m llama) tensors() (list []gguf.Tensor) {
	add := func(name string, t gguf.Type, shape ...int) {
		long := make([]int64, len(shape))
		for i, n := range shape {
			long[i] = int64(n)
		}
		list = append(list, gguf.Tensor{Name: name, Type: t, Shape: long})
	}
	q, kv := m.heads*m.headDim, m.kvHeads*m.headDim
	add("token_embd.weight", gguf.Q4_K, m.dim, m.vocab)
	add("output_norm.weight", gguf.F32, m.dim)
	add("output.weight", gguf.Q6_K, m.dim, m.vocab)
	if m.arch == "llama" {
		add("rope_freqs.weight", gguf.F32, m.headDim/2)
	}
	for i := range m.layers {
		at := func(name string) string { return fmt.Sprintf("blk.%d.%s", i, name) }
		more := gguf.Q4_K
		if moreBits(i, m.layers) {
			more = gguf.Q6_K
		}
		add(at("attn_norm.weight"), gguf.F32, m.dim)
		add(at("attn_q.weight"), gguf.Q4_K, m.dim, q)
		add(at("attn_k.weight"), gguf.Q4_K, m.dim, kv)
		add(at("attn_v.weight"), more, m.dim, kv)
		if m.arch == "qwen2" {
			add(at("attn_q.bias"), gguf.F32, q)
			add(at("attn_k.bias"), gguf.F32, kv)
			add(at("attn_v.bias"), gguf.F32, kv)
		}
		add(at("attn_output.weight"), gguf.Q4_K, q, m.dim)
		add(at("ffn_norm.weight"), gguf.F32, m.dim)
		add(at("ffn_gate.weight"), gguf.Q4_K, m.dim, m.ffn)
		add(at("ffn_up.weight"), gguf.Q4_K, m.dim, m.ffn)
		add(at("ffn_down.weight"), more, m.ffn, m.dim)
	}
	return list
}
