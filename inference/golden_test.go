package inference

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"daisy/inference/gguf"
	"daisy/inference/model"
	"daisy/inference/modeltest"
	"daisy/inference/plan"
	"daisy/rdma"
	"daisy/rdma/mem"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// goldenError bounds the normalised mean squared error against the golden logits,
// which were computed in F32. The engine keeps keys and values in F16, whose
// rounding alone is a relative error of up to 2^-11, or 2.4e-7 squared; its exp,
// silu and gelu are about as good. A few layers on, that was at most 4e-6 in these
// files. What leaving out any part of a model makes is at least a hundred times the
// bound.
const goldenError = 2e-5

// leftOut is the least error by which a missing part must show.
const leftOut = 100 * goldenError

// golden is a file of model/testdata: a model, tokens, and the logits that an
// independent implementation computes after each of them.
type golden struct {
	path   string
	tokens []int32
	logits []float32
}

func openGolden(t testing.TB, name string) golden {
	t.Helper()
	path := filepath.Join("model", "testdata", name+".gguf")
	f, err := gguf.Open(path)
	require.NoError(t, err)
	defer f.Close()
	g := golden{path: path}
	tokens, ok := f.Ints("golden.tokens")
	require.True(t, ok)
	logits, ok := f.Floats("golden.logits")
	require.True(t, ok)
	g.tokens, g.logits = append(g.tokens, tokens...), append(g.logits, logits...)
	return g
}

// forward computes tokens with the model at path, on world ranks, in steps of
// chunk tokens, and returns the logits after each token, one after the other.
func forward(t testing.TB, path string, tokens []int32, world, chunk int) []float32 {
	t.Helper()
	return forwardFrom(t, path, tokens, world, chunk, 0)
}

// forwardFrom is forward for the logits after the tokens from first on; steps
// before them only fill the KV cache.
func forwardFrom(t testing.TB, path string, tokens []int32, world, chunk, first int) []float32 {
	t.Helper()
	return forwardBy(t, path, tokens, nil, world, chunk, first)
}

// forwardBy is forwardFrom by a plan.
func forwardBy(t testing.TB, path string, tokens []int32, p *plan.Plan, world, chunk, first int) []float32 {
	t.Helper()
	transports := mem.New(world)
	var out []float32
	var g errgroup.Group
	for r := range world {
		g.Go(func() error {
			logits, err := forwardRank(path, tokens, p, rdma.NewGroup(transports[r], 1), chunk, first)
			if r == 0 {
				out = logits
			}
			return err
		})
	}
	require.NoError(t, g.Wait())
	return out
}

func forwardRank(path string, tokens []int32, p *plan.Plan, group *rdma.Group, chunk, first int) (logits []float32, err error) {
	defer group.Close()
	defer func() {
		if err != nil {
			group.Abort(err)
		}
	}()
	f, err := gguf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	arch, err := model.New(f)
	if err != nil {
		return nil, err
	}
	opt := Options{Group: group, Plan: p, Sequences: len(tokens)} // so many outputs may be in a step
	parts, err := planFor(f, arch, opt)
	if err != nil {
		return nil, err
	}
	info := Info{ContextLength: len(tokens) + 8, Threads: 1, Rank: group.Rank(), WorldSize: group.WorldSize()}
	ctx := context.Background()
	r, err := newRank(ctx, f, arch, parts, opt, &info)
	if err != nil {
		return nil, err
	}
	defer r.close()
	for start := 0; start < len(tokens); start += chunk {
		n := min(chunk, len(tokens)-start)
		s := &step{runs: []model.Run{{Start: start, N: n, KV: info.ContextLength}}, tokens: tokens[start : start+n]}
		for i := max(0, first-start); i < n; i++ {
			s.outputs = append(s.outputs, int32(i))
		}
		if err := r.compute(ctx, s); err != nil {
			return nil, err
		}
		if info.Rank == 0 {
			if !r.last() && len(s.outputs) > 0 {
				if err := r.collect(ctx, len(s.outputs)); err != nil {
					return nil, err
				}
			}
			logits = append(logits, r.logits[:len(s.outputs)*arch.Params().Vocab]...)
		}
	}
	return logits, group.Barrier(ctx)
}

// checkGolden compares the engine with the golden logits: in one prefill, token by
// token, in chunks, for the last tokens only, and on each of the numbers of ranks.
func checkGolden(t *testing.T, name string, worlds ...int) {
	t.Helper()
	g := openGolden(t, name)
	for _, chunk := range []int{len(g.tokens), 1, 7} {
		got := errorOf(forward(t, g.path, g.tokens, 1, chunk), g.logits)
		t.Logf("%s: NMSE %.1e in steps of %d", name, got, chunk)
		require.Less(t, got, goldenError)
	}
	for _, world := range worlds {
		got := errorOf(forward(t, g.path, g.tokens, world, 7), g.logits)
		t.Logf("%s: NMSE %.1e on %d ranks", name, got, world)
		require.Less(t, got, goldenError)
	}
	for _, p := range stagedPlans(t, g.path, worlds[0] > 1) {
		got := errorOf(forwardBy(t, g.path, g.tokens, &p, p.World(), 7, 0), g.logits)
		t.Logf("%s: NMSE %.1e by %s", name, got, p.Kind())
		require.Less(t, got, goldenError, "%+v", p)
	}
	// As when it answers: of a prompt's last chunk only the last tokens' logits.
	first := len(g.tokens) - 2
	want := g.logits[len(g.logits)/len(g.tokens)*first:]
	for _, world := range append(worlds, 1) {
		got := errorOf(forwardFrom(t, g.path, g.tokens, world, 5, first), want)
		t.Logf("%s: NMSE %.1e of the last on %d ranks", name, got, world)
		require.Less(t, got, goldenError)
	}
}

// stagedPlans are plans of several stages for the model at path: a pipeline, and
// where layers can be shared, stages of two ranks before and after one of one.
func stagedPlans(t testing.TB, path string, shared bool) (plans []plan.Plan) {
	t.Helper()
	f, err := gguf.Open(path)
	require.NoError(t, err)
	defer f.Close()
	arch, err := model.New(f)
	require.NoError(t, err)
	s := model.Shape(f, arch)
	if s.Layers == 1 {
		return nil // nothing to cut
	}
	half := s.Layers / 2
	add := func(first, second []int) {
		part := func(lo, hi int, ranks []int) plan.Part {
			return plan.Part{Layers: plan.Range{Lo: lo, Hi: hi}, Ranks: ranks, Shares: []float64{2, 1, 1}[:len(ranks)]}
		}
		p, err := s.Plan(part(0, half, first), part(half, s.Layers, second))
		require.NoError(t, err)
		plans = append(plans, p)
	}
	add([]int{0}, []int{1})
	add([]int{1}, []int{0})
	if shared {
		add([]int{0, 2}, []int{1})
		add([]int{0}, []int{1, 2})
		add([]int{0, 3}, []int{1, 2})
		add([]int{1, 2}, []int{0, 3})
	}
	return plans
}

// leftOutPart is one part of a model that a golden file has, and the edit that
// leaves it out. The edited model must still run, and give other logits: a part
// that could be left out unseen would not be tested.
type leftOutPart struct {
	part   string
	golden string
	kv     []gguf.KV // metadata to replace
	drop   []string  // metadata and tensors to remove
	ones   []string  // norms to make 1: without them the file is refused
}

func checkLeftOut(t *testing.T, parts []leftOutPart) {
	t.Helper()
	for _, p := range parts {
		t.Run(p.golden+"/"+p.part, func(t *testing.T) {
			g := openGolden(t, p.golden)
			path := modeltest.Ones(t, modeltest.Edit(t, g.path, p.kv, p.drop...), p.ones...)
			got := errorOf(forward(t, path, g.tokens, 1, len(g.tokens)), g.logits)
			t.Logf("NMSE %.1e", got)
			require.Greater(t, got, leftOut)
		})
	}
}

// inLayers is the name in each of n layers.
func inLayers(n int, names ...string) []string {
	var all []string
	for _, name := range names {
		for i := range n {
			all = append(all, fmt.Sprintf("blk.%d.%s", i, name))
		}
	}
	return all
}
