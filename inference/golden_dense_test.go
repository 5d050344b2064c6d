package inference

import (
	"testing"

	"daisy/inference/gguf"
)

func TestGoldenLlama(t *testing.T) {
	for _, name := range []string{"llama", "llama-linear", "llama-yarn"} {
		t.Run(name, func(t *testing.T) { checkGolden(t, name, 2, 3) })
	}
	unscaled := []gguf.KV{{Key: "llama.rope.scaling.type", Value: "none"}}
	checkLeftOut(t, []leftOutPart{
		{part: "Llama 3's frequencies", golden: "llama", drop: []string{"rope_freqs.weight"}},
		{part: "an output matrix", golden: "llama", drop: []string{"output.weight"}},
		{part: "linear scaling", golden: "llama-linear", kv: unscaled},
		{part: "YaRN", golden: "llama-yarn", kv: unscaled},
		{part: "YaRN's ramp", golden: "llama-yarn", kv: []gguf.KV{{Key: "llama.rope.scaling.type", Value: "linear"}}},
	})
}

func TestGoldenQwen2(t *testing.T) {
	checkGolden(t, "qwen2", 2, 3)
	checkLeftOut(t, []leftOutPart{
		{part: "Q's bias", golden: "qwen2", drop: inLayers(2, "attn_q.bias")},
		{part: "K's bias", golden: "qwen2", drop: inLayers(2, "attn_k.bias")},
		{part: "V's bias", golden: "qwen2", drop: inLayers(2, "attn_v.bias")},
	})
}

func TestGoldenQwen3(t *testing.T) {
	checkGolden(t, "qwen3", 2, 3)
	checkLeftOut(t, []leftOutPart{
		{part: "Q's norm", golden: "qwen3", ones: inLayers(2, "attn_q_norm.weight")},
		{part: "K's norm", golden: "qwen3", ones: inLayers(2, "attn_k_norm.weight")},
		{part: "its frequencies' base", golden: "qwen3", drop: []string{"qwen3.rope.freq_base"}},
	})
}

func TestGoldenPhi3(t *testing.T) {
	for _, name := range []string{"phi3", "phi3-long", "phi3-short"} {
		t.Run(name, func(t *testing.T) { checkGolden(t, name, 2, 3) })
	}
	checkLeftOut(t, []leftOutPart{
		{part: "the window", golden: "phi3", kv: []gguf.KV{{Key: "phi3.attention.sliding_window", Value: uint32(0)}}},
		{part: "both sets of factors", golden: "phi3-short", drop: []string{"rope_factors_long.weight", "rope_factors_short.weight"}},
		{part: "the factor of attention", golden: "phi3-short", drop: []string{"phi3.rope.scaling.attn_factor"}},
		{part: "the long factors", golden: "phi3-long", kv: []gguf.KV{{Key: "phi3.rope.scaling.original_context_length", Value: uint32(64)}}},
		{part: "the short factors", golden: "phi3-short", kv: []gguf.KV{{Key: "phi3.rope.scaling.original_context_length", Value: uint32(8)}}},
	})
}

func TestGoldenGranite(t *testing.T) {
	checkGolden(t, "granite", 2, 3)
	checkLeftOut(t, []leftOutPart{
		{part: "the embedding's multiplier", golden: "granite", drop: []string{"granite.embedding_scale"}},
		{part: "the residual's multiplier", golden: "granite", drop: []string{"granite.residual_scale"}},
		{part: "the attention's multiplier", golden: "granite", drop: []string{"granite.attention.scale"}},
		{part: "the logits' divisor", golden: "granite", drop: []string{"granite.logit_scale"}},
	})
}

func TestGoldenGemma3(t *testing.T) {
	checkGolden(t, "gemma3", 2)
	set := func(key string, value any) []gguf.KV { return []gguf.KV{{Key: "gemma3." + key, Value: value}} }
	checkLeftOut(t, []leftOutPart{
		{part: "Q's norm", golden: "gemma3", ones: inLayers(6, "attn_q_norm.weight")},
		{part: "K's norm", golden: "gemma3", ones: inLayers(6, "attn_k_norm.weight")},
		{part: "norms after attention", golden: "gemma3", ones: inLayers(6, "post_attention_norm.weight")},
		{part: "norms after feed-forward", golden: "gemma3", ones: inLayers(6, "post_ffw_norm.weight")},
		{part: "windows", golden: "gemma3", kv: set("attention.sliding_window", uint32(0))},
		{part: "the window's width", golden: "gemma3", kv: set("attention.sliding_window", uint32(7))},
		{part: "layers that see everything", golden: "gemma3", kv: set("attention.sliding_window_pattern", uint32(7))},
		{part: "local frequencies", golden: "gemma3", drop: []string{"gemma3.rope.freq_base_swa"}},
		{part: "scaled frequencies", golden: "gemma3", kv: set("rope.scaling.type", "none")},
		{part: "the logits' soft cap", golden: "gemma3", drop: []string{"gemma3.final_logit_softcapping"}},
	})
}
