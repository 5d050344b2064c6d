package inference

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"daisy/inference/gguf"
	"daisy/inference/model"
	"daisy/inference/modeltest"
	"daisy/inference/plan"
	"daisy/inference/sample"

	"github.com/stretchr/testify/require"
)

// A model's answers must not depend on how many machines compute them. Sums of
// partial products are added in another order on a cluster, so logits differ in
// their last bits, and everything here is about how much that may become.
//
// tolerance says how far a cluster may be from one rank: nmse bounds the normalised
// mean squared error of the logits after all tokens of a text, and where one rank's
// best logit leads its second by more than margin, the cluster must have the same
// best one.
//
// With weights in F32 a sum has a relative error near 2^-24 times the root of its
// length, 1e-6, or 1e-12 squared; but keys and values are kept in F16, and where a
// value is about to be rounded to one or the other side of 2^-11 the last bit
// decides. That is what goldenError allows for too. 4e-6 was measured at most.
type tolerance struct{ nmse, margin float64 }

var inF32 = tolerance{nmse: goldenError, margin: 0.05}

// manyPlans are plans of every kind for 2, 3 and 4 ranks, those that the model can
// be cut for: rank 0 first, last and in the middle.
func manyPlans(t testing.TB, path string) (plans []plan.Plan) {
	t.Helper()
	f, err := gguf.Open(path)
	require.NoError(t, err)
	defer f.Close()
	arch, err := model.New(f)
	require.NoError(t, err)
	s := model.Shape(f, arch)
	add := func(stages ...[]int) {
		var parts []plan.Part
		for i, ranks := range stages {
			lo, hi := i*s.Layers/len(stages), (i+1)*s.Layers/len(stages)
			shares := make([]float64, len(ranks))
			for j := range shares {
				shares[j] = 1
			}
			parts = append(parts, plan.Part{Layers: plan.Range{Lo: lo, Hi: hi}, Ranks: ranks, Shares: shares})
		}
		p, err := s.Plan(parts...)
		require.NoError(t, err)
		plans = append(plans, p)
	}
	add([]int{0, 1})
	add([]int{0, 1, 2})
	add([]int{0, 1, 2, 3})
	add([]int{0}, []int{1})
	add([]int{1}, []int{0}, []int{2})
	add([]int{3}, []int{2}, []int{1}, []int{0})
	add([]int{0, 1}, []int{2})
	add([]int{2}, []int{0, 1})
	add([]int{0, 2}, []int{1, 3})
	return plans
}

func planName(p plan.Plan) string {
	name := string(p.Kind())
	for _, s := range p.Stages {
		name += fmt.Sprint(s.Ranks)
	}
	return name
}

// fixedText is text of this project as it once stood: n tokens of the engine's
// model from the skip-th on.
func fixedText(t testing.TB, e *Engine, skip, n int) []int32 {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "prompts.txt"))
	require.NoError(t, err)
	const most = 12 // bytes of a token, on average
	ids := e.tokens.Encode(string(text[:min(len(text), most*(skip+n))]), true, false)
	require.GreaterOrEqual(t, len(ids), skip+n)
	return ids[skip : skip+n]
}

// forced computes the logits after the first n tokens of text, prefilled as the
// engine does it, and after each of the next more, one step each.
func forced(t testing.TB, e *Engine, text []int32, n, more int) (out [][]float32) {
	t.Helper()
	for i := n; i <= n+more; i++ {
		q := &sequence{ctx: context.Background(), prompt: text[:i], max: 1, end: func(int32) bool { return false },
			sampler: sample.New(sample.Params{}), out: make(chan int32, 1)}
		require.NoError(t, e.submit(t.Context(), q))
		for range q.out {
		}
		require.NoError(t, q.err)
		if i > n {
			require.Equal(t, i-1, q.stats.CachedTokens)
		}
		out = append(out, slices.Clone(e.rank.logits[:e.rank.arch.Params().Vocab]))
	}
	return out
}

// requireRight compares a cluster's logits with one rank's, and tells how far they
// are apart and how many tokens had a margin.
func requireRight(t testing.TB, name string, got, want [][]float32, tol tolerance) {
	t.Helper()
	f := compare(got, want, tol.margin)
	t.Logf("%s: %s", name, f)
	require.Less(t, f.nmse, tol.nmse, name)
	require.LessOrEqual(t, f.flip, tol.margin, "%s: another best token", name)
	require.Greater(t, f.judged, len(want)/3, "%s: margins too small to tell anything", name)
}

// finding is how far logits are from others.
type finding struct {
	nmse, worst float64 // over all tokens, and of the worst one
	flips       int     // tokens with another best one
	flip        float64 // the greatest margin of those
	judged, of  int     // tokens with more than the margin allowed
}

func (f finding) String() string {
	return fmt.Sprintf("NMSE %.1e, of one token up to %.1e; best token another for %d, margins up to %.3f; judged %d of %d",
		f.nmse, f.worst, f.flips, f.flip, f.judged, f.of)
}

func compare(got, want [][]float32, margin float64) finding {
	f := finding{nmse: errorOf(slices.Concat(got...), slices.Concat(want...)), of: len(want)}
	for i := range want {
		f.worst = max(f.worst, errorOf(got[i], want[i]))
		best, second := bestTwo(want[i])
		lead := float64(want[i][best] - want[i][second])
		if lead > margin {
			f.judged++
		}
		if own, _ := bestTwo(got[i]); own != best {
			f.flips++
			f.flip = max(f.flip, lead)
		}
	}
	return f
}

func bestTwo(x []float32) (best, second int) {
	best, second = 0, 1
	if x[1] > x[0] {
		best, second = 1, 0
	}
	for i := 2; i < len(x); i++ {
		switch {
		case x[i] > x[best]:
			best, second = i, best
		case x[i] > x[second]:
			second = i
		}
	}
	return best, second
}

// checkRight compares every plan with one rank after prompts of those lengths.
func checkRight(t *testing.T, path string, plans []plan.Plan, tol tolerance, more int, prompts ...int) {
	t.Helper()
	longest := slices.Max(prompts) + more + 1
	alone := solo(t, path, Options{Context: longest})
	texts, want := make([][]int32, len(prompts)), make([][][]float32, len(prompts))
	for i, n := range prompts {
		texts[i] = fixedText(t, alone, 100*i, n+more)
		want[i] = forced(t, alone, texts[i], n, more)
	}
	for _, p := range plans {
		t.Run(planName(p), func(t *testing.T) {
			e := cluster(t, path, p.World(), Options{Context: longest, Plan: &p})[0]
			for i, n := range prompts {
				requireRight(t, fmt.Sprintf("%d tokens", n), forced(t, e, texts[i], n, more), want[i], tol)
			}
		})
	}
}

// seeded is a model that 4 ranks share with fewer KV heads than ranks, and whose
// context holds the longest prompt.
func seeded(t testing.TB, kind gguf.Type) string {
	return tiny(t, modeltest.Options{Layers: 4, Heads: 9, KVHeads: 3, FFN: 256, Context: 8192, Type: kind})
}

func TestClusterIsRightOnASeededModel(t *testing.T) {
	path := seeded(t, gguf.F32)
	checkRight(t, path, manyPlans(t, path), inF32, 6, 10, 1000)
}
