package inference

import (
	"context"
	"slices"
	"testing"

	"daisy/inference/gguf"
	"daisy/inference/model"
	"daisy/inference/plan"
	"daisy/rdma"
	"daisy/rdma/mem"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// runSteps computes steps by the plan, with logits for all their tokens, which it
// returns for each step.
func runSteps(t *testing.T, path string, p plan.Plan, steps []step) (out [][]float32) {
	t.Helper()
	var g errgroup.Group
	for i, tr := range mem.New(p.World()) {
		g.Go(func() (err error) {
			group := rdma.NewGroup(tr, 1)
			defer group.Close()
			logits, err := runStepsOn(t.Context(), path, p, group, steps)
			if err != nil {
				group.Abort(err)
			}
			if i == 0 {
				out = logits
			}
			return err
		})
	}
	require.NoError(t, g.Wait())
	return out
}

func runStepsOn(ctx context.Context, path string, p plan.Plan, group *rdma.Group, steps []step) (out [][]float32, err error) {
	f, err := gguf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	arch, err := model.New(f)
	if err != nil {
		return nil, err
	}
	info := Info{ContextLength: 32, Threads: 1, Rank: group.Rank(), WorldSize: group.WorldSize()}
	r, err := newRank(ctx, f, arch, p, Options{Group: group, Plan: &p, Sequences: 64}, &info)
	if err != nil {
		return nil, err
	}
	defer r.close()
	for _, s := range steps {
		for i := range s.tokens {
			s.outputs = append(s.outputs, int32(i))
		}
		if err := r.compute(ctx, &s); err != nil {
			return nil, err
		}
		if info.Rank != 0 {
			continue
		}
		if !r.last() {
			if err := r.collect(ctx, len(s.outputs)); err != nil {
				return nil, err
			}
		}
		out = append(out, slices.Clone(r.logits[:len(s.tokens)*arch.Params().Vocab]))
	}
	return out, group.Barrier(ctx)
}

// Two sequences in one step, on several ranks, give what each gives alone on one:
// in prefill of unequal lengths, and in decode.
func TestSequencesTogetherOnPlans(t *testing.T) {
	for _, name := range []string{"llama", "qwen2", "qwen3", "phi3", "granite", "gemma3", "gpt-oss", "qwen3moe", "deepseek2", "deepseek3"} {
		g := openGolden(t, name)
		a, b := g.tokens[:11], g.tokens[4:20]
		na, nb := len(a)-1, len(b)-1
		steps := []step{
			{runs: []model.Run{{Slot: 1, N: na, KV: 16}, {Slot: 0, N: nb, KV: 32}}, tokens: slices.Concat(a[:na], b[:nb])},
			{runs: []model.Run{{Slot: 0, Start: nb, N: 1, KV: 32}, {Slot: 1, Start: na, N: 1, KV: 32}}, tokens: []int32{b[nb], a[na]}},
		}
		aloneA, aloneB := forward(t, g.path, a, 1, len(a)), forward(t, g.path, b, 1, len(b))
		v := len(aloneA) / len(a)
		plans := stagedPlans(t, g.path, false)
		for _, world := range []int{2, 4} {
			if p, err := evenPlan(t, g.path, world); err == nil {
				plans = append(plans, p)
			}
		}
		require.NotEmpty(t, plans)
		for _, p := range plans {
			t.Run(name+" "+planName(p), func(t *testing.T) {
				out := runSteps(t, g.path, p, steps)
				require.Less(t, errorOf(out[0], slices.Concat(aloneA[:na*v], aloneB[:nb*v])), goldenError)
				require.Less(t, errorOf(out[1], slices.Concat(aloneB[nb*v:], aloneA[na*v:])), goldenError)
			})
		}
	}
}
