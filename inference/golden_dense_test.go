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
