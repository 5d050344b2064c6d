package inference

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"daisy/inference/ggml"
	"daisy/inference/gguf"
	"daisy/inference/model"
	"daisy/inference/modeltest"
	"daisy/rdma"

	"github.com/stretchr/testify/require"
)

func TestGoldenQwen3MoE(t *testing.T) {
	checkGolden(t, "qwen3moe", 2, 3)
	set := func(key string, value any) []gguf.KV { return []gguf.KV{{Key: "qwen3moe." + key, Value: value}} }
	checkLeftOut(t, []leftOutPart{
		{part: "the second expert", golden: "qwen3moe", kv: set("expert_used_count", uint32(1))},
		{part: "normalised weights", golden: "qwen3moe", kv: set("expert_weights_norm", false)},
		{part: "its frequencies' base", golden: "qwen3moe", drop: []string{"qwen3moe.rope.freq_base"}},
	})
	checkFilled(t, "qwen3moe", 1, inLayers(2, "attn_q_norm.weight"), inLayers(2, "attn_k_norm.weight"))
	checkFilled(t, "qwen3moe", 0, inLayers(2, "ffn_gate_inp.weight"))
}

func TestGoldenGPTOSS(t *testing.T) {
	checkGolden(t, "gpt-oss", 2, 3)
	set := func(key string, value any) []gguf.KV { return []gguf.KV{{Key: "gpt-oss." + key, Value: value}} }
	checkLeftOut(t, []leftOutPart{
		{part: "the window", golden: "gpt-oss", kv: set("attention.sliding_window", uint32(24))},
		{part: "the window's width", golden: "gpt-oss", kv: set("attention.sliding_window", uint32(7))},
		{part: "the second expert", golden: "gpt-oss", kv: set("expert_used_count", uint32(1))},
		{part: "YaRN", golden: "gpt-oss", kv: set("rope.scaling.type", "none")},
		{part: "YaRN's ramp", golden: "gpt-oss", kv: set("rope.scaling.type", "linear")},
	})
	noSink := float32(math.Inf(-1))
	checkFilled(t, "gpt-oss", noSink, inLayers(2, "attn_sinks.weight"))
	for _, bias := range []string{"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate_inp", "ffn_gate_exps", "ffn_up_exps", "ffn_down_exps"} {
		checkFilled(t, "gpt-oss", 0, inLayers(2, bias+".bias"))
	}
}

// As DeepSeek V2, with expanded keys and values in the cache.
func TestGoldenDeepSeek2(t *testing.T) {
	checkGolden(t, "deepseek2", 2)
	set := func(key string, value any) []gguf.KV { return []gguf.KV{{Key: "deepseek2." + key, Value: value}} }
	checkLeftOut(t, []leftOutPart{
		{part: "groups", golden: "deepseek2", drop: []string{"deepseek2.expert_group_count"}},
		{part: "the weights' scale", golden: "deepseek2", drop: []string{"deepseek2.expert_weights_scale"}},
		{part: "weights as they are", golden: "deepseek2", kv: set("expert_weights_norm", true)},
		{part: "softmax", golden: "deepseek2", kv: set("expert_gating_func", uint32(2))},
	})
	checkFilled(t, "deepseek2", 0, []string{"blk.1.ffn_down_shexp.weight"}, []string{"blk.0.ffn_down.weight"})
}

// As DeepSeek V3 and Kimi K2, with the latent in the cache.
func TestGoldenDeepSeek3(t *testing.T) {
	checkGolden(t, "deepseek3", 2)
	set := func(key string, value any) []gguf.KV { return []gguf.KV{{Key: "deepseek2." + key, Value: value}} }
	checkLeftOut(t, []leftOutPart{
		{part: "groups", golden: "deepseek3", drop: []string{"deepseek2.expert_group_count"}},
		{part: "the choice's bias", golden: "deepseek3", drop: []string{"blk.1.exp_probs_b.bias"}},
		{part: "the weights' scale", golden: "deepseek3", drop: []string{"deepseek2.expert_weights_scale"}},
		{part: "normalised weights", golden: "deepseek3", drop: []string{"deepseek2.expert_weights_norm"}},
		{part: "sigmoid", golden: "deepseek3", drop: []string{"deepseek2.expert_gating_func"}},
		{part: "YaRN", golden: "deepseek3", kv: set("rope.scaling.type", "none")},
		{part: "YaRN's ramp", golden: "deepseek3", kv: set("rope.scaling.type", "linear")},
		{part: "YaRN's mscale", golden: "deepseek3", drop: []string{"deepseek2.rope.scaling.yarn_log_multiplier"}},
	})
	checkFilled(t, "deepseek3", 0, []string{"blk.1.ffn_down_shexp.weight"}, []string{"blk.0.ffn_down.weight"})
	checkFilled(t, "deepseek3", 1, inLayers(2, "attn_q_a_norm.weight"), inLayers(2, "attn_kv_a_norm.weight"))
}

// checkFilled is checkLeftOut for tensors that a model cannot do without: those of
// one set at a time are made x everywhere.
func checkFilled(t *testing.T, name string, x float32, sets ...[]string) {
	t.Helper()
	g := openGolden(t, name)
	for _, names := range sets {
		path := modeltest.Fill(t, g.path, x, names...)
		got := errorOf(forward(t, path, g.tokens, 1, len(g.tokens)), g.logits)
		t.Logf("%s: NMSE %.1e without %s", name, got, names[0])
		require.Greater(t, got, leftOut, names[0])
	}
}

// Experts may have any type that ggml multiplies; those that can be repacked for
// the CPU are, others are not. Cutting an expert must not change what it computes,
// and quantisation only as much as its precision is worth: the bounds are the
// squares of what a block of each type loses (between 1 in 2^7 and 1 in 2^3), in
// some layers and choices of experts one after the other.
func TestQuantisedExperts(t *testing.T) {
	const mxfp4, q4_1, q5_0, q8_0, iq4NL = 39, 3, 6, 8, 20
	for kind, bound := range map[ggml.Type]float64{
		ggml.F16: 1e-4, q8_0: 5e-3, q5_0: 0.1, q4_1: 0.3, mxfp4: 0.5, iq4NL: 0.3, ggml.Type(gguf.Q4_0): 0.3,
	} {
		for _, name := range []string{"gpt-oss", "qwen3moe", "deepseek3"} {
			t.Run(fmt.Sprintf("%s/type=%d", name, kind), func(t *testing.T) {
				g := openGolden(t, name)
				path := modeltest.Quantise(t, g.path, gguf.Type(kind), "_exps.weight")
				one := forward(t, path, g.tokens, 1, len(g.tokens))
				got := errorOf(one, g.logits)
				t.Logf("NMSE %.1e", got)
				require.Less(t, got, bound)
				cut := errorOf(forward(t, path, g.tokens, 2, 7), one)
				t.Logf("2 ranks and one: NMSE %.1e", cut)
				require.Less(t, cut, 2e-3) // activations are rounded to 8 bits
			})
		}
	}
}

// Two sequences in one step give what each gives alone, in prefill (of unequal
// lengths) and in decode (whose attention is one operation), whatever the cache
// holds.
func TestSparseSequencesTogether(t *testing.T) {
	for _, name := range []string{"gpt-oss", "qwen3moe", "deepseek2", "deepseek3"} {
		t.Run(name, func(t *testing.T) {
			g := openGolden(t, name)
			a, b := g.tokens[:11], g.tokens[4:20]
			f, err := gguf.Open(g.path)
			require.NoError(t, err)
			defer f.Close()
			arch, err := model.New(f)
			require.NoError(t, err)
			opt := Options{Group: rdma.Solo(), Sequences: len(a) + len(b)}
			info := Info{ContextLength: 32, Threads: 1, WorldSize: 1}
			r, err := newRank(t.Context(), f, arch, soloPlan(t, f, arch), opt, &info)
			require.NoError(t, err)
			defer r.close()
			compute := func(s *step) []float32 {
				for i := range s.tokens {
					s.outputs = append(s.outputs, int32(i))
				}
				require.NoError(t, r.compute(t.Context(), s))
				return slices.Clone(r.logits[:len(s.tokens)*arch.Params().Vocab])
			}
			na, nb := len(a)-1, len(b)-1
			prefill := compute(&step{
				runs:   []model.Run{{Slot: 1, N: na, KV: 16}, {Slot: 0, N: nb, KV: 32}},
				tokens: slices.Concat(a[:na], b[:nb]),
			})
			decode := compute(&step{
				runs:   []model.Run{{Slot: 0, Start: nb, N: 1, KV: 32}, {Slot: 1, Start: na, N: 1, KV: 32}},
				tokens: []int32{b[nb], a[na]},
			})
			alone := [2][]float32{forward(t, g.path, a, 1, len(a)), forward(t, g.path, b, 1, len(b))}
			v := arch.Params().Vocab
			require.Less(t, errorOf(prefill[:na*v], alone[0][:na*v]), 1e-6)
			require.Less(t, errorOf(prefill[na*v:], alone[1][:nb*v]), 1e-6)
			// Decode goes through ggml's fused attention, which sums F16 values in F16.
			require.Less(t, errorOf(decode[:v], alone[1][nb*v:]), 1e-5)
			require.Less(t, errorOf(decode[v:], alone[0][na*v:]), 1e-5)
		})
	}
}
