package inference

import (
	"slices"
	"testing"

	"daisy/inference/gguf"
	"daisy/inference/model"
	"daisy/inference/modeltest"
	"daisy/inference/plan"
	"daisy/rdma"

	"github.com/stretchr/testify/require"
)

// apart is an architecture whose matrices are never joined.
type apart struct{ model.Arch }

func (a apart) Specs() []model.Spec {
	specs := slices.Clone(a.Arch.Specs())
	for i := range specs {
		specs[i].Join = ""
	}
	return specs
}

// Joining matrices changes no bit of the result, whole and in shards, and matrices
// of different types stay apart.
func TestJoinedMatrices(t *testing.T) {
	path := tiny(t, modeltest.Options{Type: gguf.Q4_0})
	f, err := gguf.Open(path)
	require.NoError(t, err)
	defer f.Close()
	arch, err := model.New(f)
	require.NoError(t, err)
	shape := model.Shape(f, arch)
	part, err := shape.Deal([]float64{1, 2})
	require.NoError(t, err)
	tokens := []int32{5, 17, 99, 100, 3, 5, 77, 250, 31, 32}
	for _, shard := range []plan.Shard{shape.Whole(), part[1]} {
		joined, n := logitsOf(t, f, arch, shard, tokens)
		if n == 0 {
			t.Skip("ggml repacks nothing on this machine, so nothing is joined")
		}
		require.Equal(t, 5*arch.Params().Layers, n, "matrices joined")
		alone, n := logitsOf(t, f, apart{arch}, shard, tokens)
		require.Zero(t, n)
		require.Equal(t, alone, joined)
	}

	path = tiny(t, modeltest.Options{})
	for _, m := range []string{"attn_q.weight", "attn_k.weight", "ffn_gate.weight", "ffn_up.weight"} {
		path = modeltest.Quantise(t, path, gguf.Q4_0, m)
	}
	mixed, err := gguf.Open(path)
	require.NoError(t, err)
	defer mixed.Close()
	joined, n := logitsOf(t, mixed, arch, shape.Whole(), tokens)
	require.Equal(t, 4*arch.Params().Layers, n, "matrices joined")
	alone, _ := logitsOf(t, mixed, apart{arch}, shape.Whole(), tokens)
	require.Equal(t, alone, joined)
}

// soloPlan is the plan of one rank that holds everything.
func soloPlan(t *testing.T, f *gguf.File, a model.Arch) plan.Plan {
	t.Helper()
	p, err := planFor(f, a, Options{Group: rdma.Solo()})
	require.NoError(t, err)
	return p
}

// logitsOf computes one rank's logits and tells how many matrices it joined.
func logitsOf(t *testing.T, f *gguf.File, a model.Arch, shard plan.Shard, tokens []int32) ([]float32, int) {
	t.Helper()
	opt := Options{Group: rdma.Solo(), Sequences: len(tokens)}
	info := Info{ContextLength: 32, Threads: 1, WorldSize: 1}
	p := soloPlan(t, f, a)
	p.Stages[0].Shards[0] = shard
	r, err := newRank(t.Context(), f, a, p, opt, &info)
	require.NoError(t, err)
	defer r.close()
	s := &step{runs: []model.Run{{N: len(tokens), KV: 32}}, tokens: tokens}
	for i := range tokens {
		s.outputs = append(s.outputs, int32(i))
	}
	require.NoError(t, r.compute(t.Context(), s))
	return slices.Clone(r.logits), len(r.mem.Joined)
}
