package model

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"daisy/inference/gguf"
	"daisy/inference/plan"

	"github.com/stretchr/testify/require"
)

// As TestNonsenseIsRefused, for mixtures of experts.
func TestSparseNonsenseIsRefused(t *testing.T) {
	u := func(n uint32) any { return n }
	inf := float32(math.Inf(1))
	experts := map[string][]any{
		"expert_count":               {u(0), u(1), u(5), u(1 << 31)},
		"expert_used_count":          {u(0), u(9), u(1 << 31)},
		"expert_feed_forward_length": {u(0), u(97), u(1 << 31)},
		"expert_weights_scale":       {inf},
		"block_count":                {u(0), u(3), u(1 << 31)},
		"embedding_length":           {u(0), u(33), u(1 << 31)},
		"attention.head_count":       {u(0), u(5), u(1 << 31)},
		"rope.dimension_count":       {u(7), u(1 << 31)},
		"rope.freq_base":             {float32(-1)},
	}
	for golden, more := range map[string]map[string][]any{
		"qwen3moe": {
			"attention.head_count_kv": {u(4)},
			"attention.key_length":    {u(0), u(9)},
		},
		"gpt-oss": {
			"attention.head_count_kv":  {u(4)},
			"attention.key_length":     {u(0), u(9)},
			"attention.sliding_window": {u(0), u(1 << 31)},
			"rope.scaling.factor":      {float32(0.0001) * -1, inf},
		},
		"deepseek2": {
			"attention.key_length":             {u(0), u(64), u(193)},
			"attention.value_length":           {u(0), u(9)},
			"attention.kv_lora_rank":           {u(0), u(17)},
			"attention.q_lora_rank":            {u(24)},
			"attention.layer_norm_rms_epsilon": {inf, float32(-1)},
			"leading_dense_block_count":        {u(0), u(2), u(3)},
			"feed_forward_length":              {u(0), u(161)},
			"expert_shared_count":              {u(0), u(1), u(3)},
			"expert_group_count":               {u(3), u(8), u(9)},
			"expert_group_used_count":          {u(0), u(1), u(5)},
			"expert_gating_func":               {u(3), u(4)},
		},
		"deepseek3": {
			"attention.key_length_mla":   {u(0), u(64), u(81)},
			"attention.value_length_mla": {u(0), u(9)},
			"attention.q_lora_rank":      {u(0), u(25)},
			"rope.scaling.type":          {"longrope"},
		},
	} {
		path := filepath.Join("testdata", golden+".gguf")
		for _, table := range []map[string][]any{experts, more} {
			for key, values := range table {
				for _, v := range values {
					err := refused(t, path, []gguf.KV{{Key: architectureOf(t, path) + "." + key, Value: v}})
					require.Error(t, err, "%s: %s = %v", golden, key, v)
					require.NotContains(t, err.Error(), "\n")
				}
			}
		}
		for _, tensor := range []string{"blk.1.ffn_gate_inp.weight", "blk.1.ffn_gate_exps.weight", "blk.1.attn_output.weight"} {
			require.ErrorContains(t, refused(t, path, nil, tensor), `"`+tensor+`" is missing`)
		}
	}
}

// Whatever the number of ranks, each element of each cut tensor is on one of them,
// in feed-forward blocks of all widths.
func TestSparseShardsCoverEveryTensorOnce(t *testing.T) {
	for golden, ranks := range map[string]int{"qwen3moe": 3, "gpt-oss": 3, "deepseek2": 2, "deepseek3": 2} {
		f, err := gguf.Open(filepath.Join("testdata", golden+".gguf"))
		require.NoError(t, err)
		defer f.Close()
		a, err := New(f)
		require.NoError(t, err)
		for world := 1; world <= ranks; world++ {
			shards, err := Shape(f, a).Deal([]float64{2, 1, 3}[:world])
			require.NoError(t, err)
			for _, s := range a.Specs() {
				requireCoveredOnce(t, a.Params(), s, shards)
			}
		}
	}
}

// Blocks wider than FFN are cut in proportion, at quantisation blocks, and every
// rank has a part of each.
func TestFeedForwardWidths(t *testing.T) {
	for _, unit := range []int{32, 256} {
		for _, ffn := range []int{1408, 1536, 2048} {
			p := &Params{FFN: ffn, FFNUnit: unit}
			for _, width := range []int{ffn, 2 * ffn, 10944, 18432} {
				for world := 1; world <= ffn/unit; world++ {
					shares := make([]float64, world)
					for i := range shares {
						shares[i] = float64(1 + i%4)
					}
					cuts, err := plan.Deal(ffn, unit, shares)
					require.NoError(t, err)
					next := 0
					for _, c := range cuts {
						r := p.ffn(c, width)
						require.Equal(t, next, r.Lo)
						require.Greater(t, r.Hi, r.Lo)
						require.Zero(t, r.Lo%unit)
						next = r.Hi
					}
					require.Equal(t, width, next)
				}
			}
		}
	}
}

// A latent cache is narrow and the same on all ranks; expanded heads are cut.
func TestCacheWidths(t *testing.T) {
	for golden, want := range map[string][2]int{"deepseek3": {512 + 64, 0}, "deepseek2": {128 + 64, 128}} {
		f, err := gguf.Open(filepath.Join("testdata", golden+".gguf"))
		require.NoError(t, err)
		defer f.Close()
		a, err := New(f)
		require.NoError(t, err)
		shards, err := Shape(f, a).Deal([]float64{1, 1})
		require.NoError(t, err)
		for _, s := range shards {
			k, v := a.Params().CacheWidths(s)
			require.Equal(t, want, [2]int{k, v}, golden)
		}
	}
}

// The fixtures stay small.
func TestGoldenFilesAreSmall(t *testing.T) {
	files, err := filepath.Glob("testdata/*.gguf")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, path := range files {
		info, err := os.Stat(path)
		require.NoError(t, err)
		require.Less(t, info.Size(), int64(1<<20), path)
	}
}
