package calibrate

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"daisy/inference/ggml"
	"daisy/inference/gguf"
	"daisy/inference/modeltest"
	"daisy/inference/plan"
	"daisy/inference/plan/profile"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func workload(t *testing.T, path string) *Workload {
	t.Helper()
	f, err := gguf.OpenHeader(path)
	require.NoError(t, err)
	defer f.Close()
	w, err := Of(f)
	require.NoError(t, err)
	return w
}

func tiny(t *testing.T, o modeltest.Options) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	modeltest.Write(t, path, o)
	return path
}

// What a token uses is all matrices but the embedding, unless that makes logits.
func TestWorkload(t *testing.T) {
	w := workload(t, tiny(t, modeltest.Options{Layers: 3, Dim: 64, Heads: 8, KVHeads: 4, HeadDim: 32, FFN: 256}))
	layer := 64*256 + 2*64*128 + 256*64 + 3*64*256
	const vocab = 3 + 256 + 2
	require.Equal(t, []Matrix{
		{ggml.F32, 64, 256, true, 3 * 3}, // queries, gate and up
		{ggml.F32, 256, 64, true, 2 * 3}, // attention's output, and down
		{ggml.F32, 64, 128, true, 2 * 3}, // keys, values
		{ggml.F32, 64, vocab, false, 1},
	}, w.Matrices)
	require.EqualValues(t, 4*(3*layer+64*vocab), w.Bytes())
	require.Equal(t, []int{64, 256, 8, 4, 32}, []int{w.Dim, w.FFN, w.Heads, w.KVHeads, w.HeadDim})

	tied := workload(t, tiny(t, modeltest.Options{Layers: 3, Dim: 64, Heads: 8, KVHeads: 4, HeadDim: 32, FFN: 256, Tied: true}))
	require.Equal(t, w.Matrices, tied.Matrices)
}

// Every architecture's workload can be probed, and gives a node that plans take.
func TestProbe(t *testing.T) {
	files, err := filepath.Glob("../model/testdata/*.gguf")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	files = append(files, tiny(t, modeltest.Options{Type: gguf.Q8_0, Dim: 64}))
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			w := workload(t, path)
			met := 0
			r, err := Probe(t.Context(), w, Options{Threads: 1, Meet: func() error { met++; return nil }})
			require.NoError(t, err)
			for _, x := range []float64{r.Bandwidth, r.Compute, r.Launch, r.Layer} {
				require.Positive(t, x)
			}
			require.GreaterOrEqual(t, met, 4)
			m := &plan.Model{Shape: plan.Shape{Layers: 1, Heads: 1, HeadUnit: 1, KVHeads: 1, KVHeadUnit: 1, FFN: 32, FFNUnit: 32, Vocab: 8, VocabUnit: 8},
				Dim: 32, Layers: make([]plan.Layer, 1), MaxContext: 64}
			_, err = plan.Choose(m, []plan.Node{r.Node("this", 1<<30)}, plan.Uniform(1, plan.Link{}), plan.Usage{Leader: -1}.Defaults(m))
			require.NoError(t, err)
		})
	}
}

func TestProbeEnds(t *testing.T) {
	w := workload(t, tiny(t, modeltest.Options{}))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Probe(ctx, w, Options{Threads: 1})
	require.ErrorIs(t, err, context.Canceled)
	gone := errors.New("the others have gone")
	_, err = Probe(t.Context(), w, Options{Threads: 1, Meet: func() error { return gone }})
	require.ErrorIs(t, err, gone)
	_, err = Probe(t.Context(), &Workload{Dim: 32, FFN: 32, Heads: 1, KVHeads: 1, HeadDim: 32, Rope: w.Rope}, Options{Threads: 1})
	require.ErrorContains(t, err, "no matrices")
}

func TestRates(t *testing.T) {
	a, b := Rates{Bandwidth: 1, Compute: 3, Launch: 1, Layer: 2}, Rates{Bandwidth: 3, Compute: 1, Launch: 3, Layer: 4}
	require.Equal(t, Rates{Bandwidth: 1.5, Compute: 1.5, Launch: 2, Layer: 3}, Mean([]Rates{a, b}))
}

// What is corrected by a measurement explains it.
func TestCorrected(t *testing.T) {
	f, err := gguf.OpenHeader(tiny(t, modeltest.Options{Layers: 4}))
	require.NoError(t, err)
	defer f.Close()
	m, err := profile.Of(f)
	require.NoError(t, err)
	u := plan.Usage{Context: 64, Sequences: 1, Prompt: 32, Answer: 16, Leader: -1}
	predict := func(r Rates) plan.Prediction {
		return m.Shape.Solo().Predict(m, []plan.Node{r.Node("", 1)}, plan.Uniform(1, plan.Link{}), []int{0}, u)
	}
	probed := Rates{Bandwidth: 1e9, Compute: 1e11, Launch: 1e-6, Layer: 1e-6}
	real := Rates{Bandwidth: 6e8, Compute: 3e10, Launch: 1e-6, Layer: 1e-6}
	x := predict(real)
	got, err := probed.Corrected(probed, plan.Measured{Model: m, Usage: u, Decode: 1 / x.Token.Total(), Prefill: x.Prefill})
	require.NoError(t, err)
	require.InEpsilon(t, real.Bandwidth, got.Bandwidth, 1e-6)
	require.InEpsilon(t, x.Decode, predict(got).Decode, 1e-6)
	require.InEpsilon(t, x.Prefill, predict(got).Prefill, 0.1)
	_, err = probed.Corrected(probed, plan.Measured{Model: m, Usage: u, Decode: 1e9})
	require.Error(t, err)
}
