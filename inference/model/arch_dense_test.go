package model

import (
	"math"
	"testing"

	"daisy/inference/gguf"
	"daisy/inference/modeltest"

	"github.com/stretchr/testify/require"
)

// nonsense is what no architecture may take: hyperparameters that contradict each
// other or the tensors, or that ggml would abort the process for.
var nonsense = map[string][]any{
	"block_count":                          {uint32(0), uint32(7), uint32(1 << 31)},
	"embedding_length":                     {uint32(0), uint32(35), uint32(1 << 31)},
	"feed_forward_length":                  {uint32(0), uint32(63), []uint32{96, 96}},
	"attention.head_count":                 {uint32(0), uint32(5), uint32(1 << 31)},
	"attention.head_count_kv":              {uint32(0), uint32(5), uint32(99), []uint32{3, 3}},
	"attention.key_length":                 {uint32(0), uint32(7)},
	"attention.value_length":               {uint32(4)},
	"attention.layer_norm_rms_epsilon":     {float32(math.Inf(1)), float32(-1)},
	"context_length":                       {uint32(0), uint32(1 << 31)},
	"rope.dimension_count":                 {uint32(0), uint32(3), uint32(64)},
	"rope.freq_base":                       {float32(0), float32(math.NaN()), float32(-1)},
	"rope.scaling.factor":                  {float32(-2), float32(math.Inf(1))},
	"rope.scaling.original_context_length": {uint32(0), uint32(1 << 31)},
	"expert_count":                         {uint32(8)},
}

func TestNonsenseIsRefusedByEach(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for name, own := range map[string]map[string][]any{
		"llama":     {"rope.scaling.type": {"longrope", "dynamic"}},
		"qwen2":     {"rope.scaling.type": {"longrope"}},
		"qwen3":     {"rope.scaling.type": {"longrope"}},
		"phi3":      {"attention.sliding_window": {uint32(1 << 31)}, "rope.scaling.type": {"longrope"}},
		"phi3-long": {"rope.scaling.attn_factor": {nan, inf}, "rope.dimension_count": {uint32(4)}},
		"granite": {
			"embedding_scale": {float32(0), nan}, "residual_scale": {inf, float32(-1)}, "logit_scale": {float32(0), nan},
			"attention.scale": {float32(0), inf}, "rope.scaling.finetuned": {false},
		},
		"gemma3": {
			"attention.sliding_window": {uint32(1 << 31)}, "attention.sliding_window_pattern": {uint32(0), []uint32{1, 0}},
			"rope.freq_base_swa": {float32(0), nan}, "final_logit_softcapping": {nan, float32(-1)},
		},
	} {
		path := "testdata/" + name + ".gguf"
		for _, table := range []map[string][]any{nonsense, own} {
			for key, values := range table {
				for _, v := range values {
					err := refused(t, path, []gguf.KV{{Key: architectureOf(t, path) + "." + key, Value: v}})
					require.Error(t, err, "%s: %s = %v", name, key, v)
					require.NotContains(t, err.Error(), "\n")
				}
			}
		}
	}
}

// Without any of its tensors a file is refused by that tensor's name, or it runs
// without, if the tensor is optional.
func TestMissingTensorsAreNamed(t *testing.T) {
	optional := map[string]bool{"output.weight": true, "rope_freqs.weight": true,
		"blk.0.attn_q.bias": true, "blk.0.attn_k.bias": true, "blk.0.attn_v.bias": true,
		"blk.1.attn_q.bias": true, "blk.1.attn_k.bias": true, "blk.1.attn_v.bias": true}
	for _, name := range []string{"llama", "qwen2", "qwen3", "phi3", "granite", "gemma3"} {
		path := "testdata/" + name + ".gguf"
		f, err := gguf.Open(path)
		require.NoError(t, err)
		defer f.Close()
		for _, x := range f.Tensors() {
			err := refused(t, path, nil, x.Name)
			if optional[x.Name] {
				require.NoError(t, err, x.Name)
			} else {
				require.ErrorContains(t, err, `"`+x.Name+`" is missing`)
			}
		}
	}
	for _, one := range []string{"rope_factors_long.weight", "rope_factors_short.weight"} {
		require.ErrorContains(t, refused(t, "testdata/phi3-long.gguf", nil, one), "LongRoPE")
	}
}

func architectureOf(t *testing.T, path string) string {
	t.Helper()
	f, err := gguf.Open(path)
	require.NoError(t, err)
	defer f.Close()
	name, _ := f.String("general.architecture")
	return name
}

// refused is New's error for the edited file.
func refused(t *testing.T, path string, kv []gguf.KV, drop ...string) error {
	t.Helper()
	f, err := gguf.Open(modeltest.Edit(t, path, kv, drop...))
	require.NoError(t, err)
	defer f.Close()
	_, err = New(f)
	return err
}
