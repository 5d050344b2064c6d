// Package published writes headers of models whose shapes their makers have
// published, without their weights: what plans for Macs that are not here are
// made from.
//
// Shapes are from the config.json of huggingface.co/deepseek-ai/DeepSeek-R1 and
// huggingface.co/moonshotai/Kimi-K2-Instruct. Tensors have the types that
// llama.cpp's Q4_K_M gives them.
package published

import (
	"fmt"
	"io"

	"daisy/inference/gguf"
)

// Model is the shape of a model of architecture deepseek2.
type Model struct {
	Name                       string
	layers, dense              int // dense: leading layers without experts
	dim, heads, vocab, context int
	qLatent, kvLatent          int // of queries, of keys and values
	plain, rotated, value      int // of a head: key without position, with it, value
	ffn, columns               int // feed-forward columns of a dense layer and of an expert
	experts, used, shared      int
	groups, groupsUsed         int
	scale                      float32 // of the experts' sum
	ropeBase, ropeFactor       float32
}

// Models are the published shapes by name.
var Models = map[string]Model{
	"deepseek-r1": {
		Name: "DeepSeek R1", layers: 61, dense: 3, dim: 7168, heads: 128, vocab: 129280, context: 163840,
		qLatent: 1536, kvLatent: 512, plain: 128, rotated: 64, value: 128, ffn: 18432, columns: 2048,
		experts: 256, used: 8, shared: 1, groups: 8, groupsUsed: 4, scale: 2.5, ropeBase: 10000, ropeFactor: 40,
	},
	"kimi-k2": {
		Name: "Kimi K2", layers: 61, dense: 1, dim: 7168, heads: 64, vocab: 163840, context: 131072,
		qLatent: 1536, kvLatent: 512, plain: 128, rotated: 64, value: 128, ffn: 18432, columns: 2048,
		experts: 384, used: 8, shared: 1, groups: 1, groupsUsed: 1, scale: 2.827, ropeBase: 50000, ropeFactor: 32,
	},
}

// Write writes the model's header.
func (m Model) Write(w io.Writer) error { return gguf.WriteHeader(w, m.metadata(), m.tensors()) }

func (m Model) metadata() []gguf.KV {
	kv := []gguf.KV{{Key: "general.architecture", Value: "deepseek2"}, {Key: "general.name", Value: m.Name}}
	add := func(key string, value any) { kv = append(kv, gguf.KV{Key: "deepseek2." + key, Value: value}) }
	for _, x := range []struct {
		key   string
		value int
	}{
		{"block_count", m.layers}, {"context_length", m.context}, {"embedding_length", m.dim}, {"feed_forward_length", m.ffn},
		{"attention.head_count", m.heads}, {"attention.head_count_kv", 1},
		{"attention.key_length", m.kvLatent + m.rotated}, {"attention.value_length", m.kvLatent},
		{"attention.key_length_mla", m.plain + m.rotated}, {"attention.value_length_mla", m.value},
		{"attention.q_lora_rank", m.qLatent}, {"attention.kv_lora_rank", m.kvLatent}, {"rope.dimension_count", m.rotated},
		{"leading_dense_block_count", m.dense}, {"vocab_size", m.vocab},
		{"expert_count", m.experts}, {"expert_used_count", m.used}, {"expert_shared_count", m.shared},
		{"expert_feed_forward_length", m.columns}, {"expert_gating_func", 2},
		{"expert_group_count", m.groups}, {"expert_group_used_count", m.groupsUsed},
		{"rope.scaling.original_context_length", 4096},
	} {
		add(x.key, uint32(x.value))
	}
	add("expert_weights_scale", m.scale)
	add("expert_weights_norm", true)
	add("attention.layer_norm_rms_epsilon", float32(1e-6))
	add("rope.freq_base", m.ropeBase)
	add("rope.scaling.type", "yarn")
	add("rope.scaling.factor", m.ropeFactor)
	add("rope.scaling.yarn_log_multiplier", float32(0.1))
	return kv
}

func (m Model) tensors() (list []gguf.Tensor) {
	add := func(name string, t gguf.Type, shape ...int64) {
		list = append(list, gguf.Tensor{Name: name, Type: t, Shape: shape})
	}
	dim, heads, columns := int64(m.dim), int64(m.heads), int64(m.columns)
	kv, q := int64(m.kvLatent), int64(m.qLatent)
	plain, rotated, value := int64(m.plain), int64(m.rotated), int64(m.value)
	add("token_embd.weight", gguf.Q4_K, dim, int64(m.vocab))
	add("output_norm.weight", gguf.F32, dim)
	add("output.weight", gguf.Q6_K, dim, int64(m.vocab))
	for i := range m.layers {
		at := func(name string) string { return fmt.Sprintf("blk.%d.%s", i, name) }
		down := gguf.Q4_K
		if m.moreBits(i) {
			down = gguf.Q6_K
		}
		feedForward := func(kind string, columns int64) {
			add(at("ffn_gate"+kind+".weight"), gguf.Q4_K, dim, columns)
			add(at("ffn_up"+kind+".weight"), gguf.Q4_K, dim, columns)
			add(at("ffn_down"+kind+".weight"), down, columns, dim)
		}
		add(at("attn_norm.weight"), gguf.F32, dim)
		add(at("attn_q_a.weight"), gguf.Q4_K, dim, q)
		add(at("attn_q_a_norm.weight"), gguf.F32, q)
		add(at("attn_q_b.weight"), gguf.Q4_K, q, heads*(plain+rotated))
		add(at("attn_kv_a_mqa.weight"), gguf.Q4_K, dim, kv+rotated)
		add(at("attn_kv_a_norm.weight"), gguf.F32, kv)
		add(at("attn_k_b.weight"), gguf.Q5_0, plain, kv, heads) // rows too short for a K-quant
		add(at("attn_v_b.weight"), gguf.Q4_K, kv, value, heads)
		add(at("attn_output.weight"), gguf.Q4_K, heads*value, dim)
		add(at("ffn_norm.weight"), gguf.F32, dim)
		if i < m.dense {
			feedForward("", int64(m.ffn))
			continue
		}
		n := int64(m.experts)
		add(at("ffn_gate_inp.weight"), gguf.F32, dim, n)
		add(at("exp_probs_b.bias"), gguf.F32, n)
		add(at("ffn_gate_exps.weight"), gguf.Q4_K, dim, columns, n)
		add(at("ffn_up_exps.weight"), gguf.Q4_K, dim, columns, n)
		add(at("ffn_down_exps.weight"), down, columns, dim, n)
		feedForward("_shexp", columns*int64(m.shared))
	}
	return list
}

// moreBits tells whether Q4_K_M gives layer i's down matrices Q6_K: the first and
// last eighth, and every third between.
func (m Model) moreBits(i int) bool {
	n := m.layers
	return i < n/8 || i >= 7*n/8 || (i-n/8)%3 == 2
}
