package published

import (
	"fmt"

	"daisy/inference/gguf"
)

// deepSeek2 is the shape of a model of that architecture.
type deepSeek2 struct {
	name                       string
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

func (m deepSeek2) metadata() []gguf.KV {
	kv := []gguf.KV{{Key: "general.architecture", Value: "deepseek2"}, {Key: "general.name", Value: m.name}}
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

func (m deepSeek2) tensors() (list []gguf.Tensor) {
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
		if moreBits(i, m.layers) {
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
