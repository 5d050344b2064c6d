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
