package inference

import (
	"os"
	"path/filepath"
	"testing"

	"daisy/inference/modeltest"
	"daisy/inference/plan"

	"github.com/stretchr/testify/require"
)

// inQ4 is for SmolLM2 in Q4_1. Quantised weights are multiplied with activations
// rounded to 8 bits, a step of up to 1/254 of a block's greatest value for each, and
// a last bit makes steps of that size. So two computations are as far from each
// other as each is from the product without that rounding, at most twice as far, in
// squares four times: TestLongQuantisationNoise measures 4.8e-4 and best tokens that
// change up to a lead of 0.12; on clusters they did up to 0.31, which makes one token
// 1.4 times as likely as the other.
//
// The bound leaves a factor of two to processors that round otherwise.
var inQ4 = tolerance{nmse: 4e-3, margin: 0.5}

// realPath is the model that `make model` brings.
func realPath(t testing.TB) string {
	t.Helper()
	path := filepath.Join("..", "models", "SmolLM2-135M-Instruct.Q4_1.gguf")
	if _, err := os.Stat(path); err != nil {
		t.Skip("the real model is not here: run `make model`")
	}
	return path
}

func TestClusterIsRightOnSmolLM2(t *testing.T) {
	path := realPath(t)
	plans := manyPlans(t, path)
	checkRight(t, path, []plan.Plan{plans[1], plans[4], plans[8]}, inQ4, 32, 10)
}

// The real model with its weights' values in F32, so that only the order of sums
// differs.
func TestLongSmolLM2InF32(t *testing.T) {
	long(t)
	path := modeltest.InF32(t, realPath(t))
	plans := manyPlans(t, path)
	checkRight(t, path, []plan.Plan{plans[0], plans[2], plans[4], plans[8]}, inF32, 32, 10, 1000)
}

func TestLongSmolLM2(t *testing.T) {
	long(t)
	path := realPath(t)
	checkRight(t, path, manyPlans(t, path), inQ4, 64, 10, 1000)
}

// Of the prompts that take longest some plans of each kind; all with
// DAISY_TEST_LONG=all.
func TestLongSmolLM2FiveThousandTokens(t *testing.T) {
	long(t)
	path := realPath(t)
	plans := manyPlans(t, path)
	if os.Getenv("DAISY_TEST_LONG") != "all" {
		plans = []plan.Plan{plans[2], plans[4], plans[8]}
	}
	checkRight(t, path, plans, inQ4, 64, 5000)
}

// TestLongQuantisationNoise measures how far one rank is from the product of the
// same weights without rounding activations. inQ4 follows from it.
func TestLongQuantisationNoise(t *testing.T) {
	long(t)
	path := realPath(t)
	exact, rounded := solo(t, modeltest.InF32(t, path), Options{}), solo(t, path, Options{})
	for i, n := range []int{10, 1000} {
		text := fixedText(t, exact, 100*i, n+100)
		f := compare(forced(t, rounded, text, n, 100), forced(t, exact, text, n, 100), inQ4.margin)
		t.Logf("%d tokens: %s", n, f)
		require.Less(t, 4*f.nmse, inQ4.nmse)
		require.LessOrEqual(t, f.flip, inQ4.margin)
	}
}
