package model

import (
	"bytes"
	"math"
	"testing"

	"daisy/inference/gguf"
	"daisy/inference/modeltest"
	"daisy/inference/plan"

	"github.com/stretchr/testify/require"
)

func parse(t *testing.T, kv []gguf.KV, tensors []gguf.TensorData) *gguf.File {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, gguf.Write(&b, kv, tensors))
	f, err := gguf.Parse(bytes.NewReader(b.Bytes()), int64(b.Len()))
	require.NoError(t, err)
	return f
}

// A sound GGUF whose numbers make no model is refused, never built into a graph:
// ggml would abort the process.
func TestNonsenseIsRefused(t *testing.T) {
	u := func(n uint32) any { return n }
	for key, values := range map[string][]any{
		"general.architecture":                   {"lama", ""},
		"llama.block_count":                      {u(0), u(3), u(1 << 31)},
		"llama.embedding_length":                 {u(0), u(63), u(1 << 31)},
		"llama.feed_forward_length":              {u(0), u(161)},
		"llama.attention.head_count":             {u(0), u(7)},
		"llama.attention.head_count_kv":          {u(0), u(4), u(9), []uint32{3, 3}},
		"llama.attention.key_length":             {u(0), u(31)},
		"llama.attention.value_length":           {u(16)},
		"llama.rope.dimension_count":             {u(0), u(31), u(64)},
		"llama.rope.freq_base":                   {float32(0), float32(math.NaN()), float32(-1)},
		"llama.rope.scaling.type":                {"longrope"},
		"llama.rope.scaling.factor":              {float32(-2), float32(math.Inf(1))},
		"llama.expert_count":                     {u(8)},
		"llama.attention.layer_norm_rms_epsilon": {float32(math.Inf(1))},
	} {
		for _, v := range values {
			kv, tensors := modeltest.Build(modeltest.Options{KV: []gguf.KV{{Key: key, Value: v}}})
			_, err := New(parse(t, kv, tensors))
			require.Error(t, err, "%s = %v", key, v)
			require.NotContains(t, err.Error(), "\n")
		}
	}
}

func TestTensorsMustFit(t *testing.T) {
	kv, tensors := modeltest.Build(modeltest.Options{})
	without := append([]gguf.TensorData(nil), tensors[:len(tensors)-2]...) // no output_norm
	_, err := New(parse(t, kv, without))
	require.ErrorContains(t, err, `"output_norm.weight" is missing`)

	extra := append(append([]gguf.TensorData(nil), tensors...), gguf.TensorData{Name: "blk.0.attn_q.bias", Shape: []int64{1}, Type: gguf.F32, Data: make([]byte, 4)})
	_, err = New(parse(t, kv, extra))
	require.ErrorIs(t, err, ErrUnsupported)
	require.ErrorContains(t, err, "attn_q.bias")
}

func TestUnknownArchitectureIsNamed(t *testing.T) {
	kv, tensors := modeltest.Build(modeltest.Options{KV: []gguf.KV{{Key: "general.architecture", Value: "mamba"}}})
	_, err := New(parse(t, kv, tensors))
	require.ErrorIs(t, err, ErrUnsupported)
	require.ErrorContains(t, err, `"mamba"`)
	require.ErrorContains(t, err, "llama")
}

// For every number of ranks: each row and column of every cut tensor is on
// exactly one rank.
func TestShardsCoverEveryTensorOnce(t *testing.T) {
	kv, tensors := modeltest.Build(modeltest.Options{Heads: 16, KVHeads: 8, FFN: 512})
	f := parse(t, kv, tensors)
	a, err := New(f)
	require.NoError(t, err)
	for world := 1; world <= 8; world++ {
		shares := make([]float64, world)
		for i := range shares {
			shares[i] = float64(1 + i%3)
		}
		shards, err := Shape(f, a).Deal(shares)
		require.NoError(t, err)
		for _, s := range a.Specs() {
			requireCoveredOnce(t, a.Params(), s, shards)
		}
	}
}

// The same for rules whose part is more than one range.
func TestFusedTensorsAreCoveredOnce(t *testing.T) {
	p := &Params{Heads: 8, KVHeads: 4, HeadDim: 16, FFN: 96}
	for world := 1; world <= 3; world++ {
		shards, err := plan.Shape{Heads: 8, HeadUnit: 1, KVHeads: 4, KVHeadUnit: 1, FFN: 96, FFNUnit: 32, Vocab: 8, VocabUnit: 1}.Deal([]float64{3, 2, 1}[:world])
		require.NoError(t, err)
		requireCoveredOnce(t, p, Spec{Name: "qkv", Shape: []int{64, 8*16 + 2*4*16}, Rule: QKVRows}, shards)
		requireCoveredOnce(t, p, Spec{Name: "qkv bias", Shape: []int{8*16 + 2*4*16}, Rule: QKVRows}, shards)
		requireCoveredOnce(t, p, Spec{Name: "gate and up", Shape: []int{64, 2 * 96}, Rule: GateUpRows}, shards)
		requireCoveredOnce(t, p, Spec{Name: "experts", Shape: []int{64, 96, 5}, Rule: FFNRows}, shards)
		requireCoveredOnce(t, p, Spec{Name: "sinks", Shape: []int{8}, Rule: Heads}, shards)
	}
}

func requireCoveredOnce(t *testing.T, p *Params, s Spec, shards []plan.Shard) {
	t.Helper()
	if s.Rule == Replicated {
		require.Equal(t, -1, s.Cut(p, shards[0]).Dim)
		return
	}
	var holders []int
	for _, shard := range shards {
		c := s.Cut(p, shard)
		if holders == nil {
			holders = make([]int, s.Shape[c.Dim])
		}
		last := 0
		for _, r := range c.Ranges {
			require.LessOrEqual(t, last, r.Lo, s.Name)
			last = r.Hi
			for i := r.Lo; i < r.Hi; i++ {
				holders[i]++
			}
		}
		require.Equal(t, c.Len(), s.ShardShape(c)[c.Dim], s.Name)
	}
	for i, n := range holders {
		require.Equal(t, 1, n, "%s, element %d", s.Name, i)
	}
}

// K-quants hold 256 values in a block, so heads and columns are cut in larger
// units.
func TestUnitsFollowQuantisationBlocks(t *testing.T) {
	kv, tensors := modeltest.Build(modeltest.Options{Heads: 8, KVHeads: 8, FFN: 1024})
	for i := range tensors {
		switch tensors[i].Name {
		case "blk.0.attn_output.weight", "blk.1.ffn_down.weight":
			tensors[i].Type = gguf.Type(12) // Q4_K: 144 bytes for 256 values
			n := tensors[i].Shape[0] * tensors[i].Shape[1]
			tensors[i].Data = make([]byte, n/256*144)
		}
	}
	f := parse(t, kv, tensors)
	a, err := New(f)
	require.NoError(t, err)
	s := Shape(f, a)
	require.Equal(t, 8, s.KVHeadUnit) // 8 heads of 32 make one block
	require.Equal(t, 256, s.FFNUnit)
}
