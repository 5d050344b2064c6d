package inference

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"daisy/inference/modeltest"
	"daisy/inference/plan"
	"daisy/inference/sample"

	"github.com/stretchr/testify/require"
)

// threeStages is a pipeline in which rank 0 stands in the middle.
func threeStages(t *testing.T, path string) plan.Plan {
	p := stagedPlans(t, path, false)[0]
	first := p.Stages[0]
	p.Stages = []plan.Stage{
		{Layers: plan.Range{Hi: 1}, Ranks: []int{1}, Shards: first.Shards},
		{Layers: plan.Range{Lo: 1, Hi: 2}, Ranks: []int{0}, Shards: []plan.Shard{first.Shards[0]}},
		{Layers: plan.Range{Lo: 2, Hi: 4}, Ranks: []int{2}, Shards: first.Shards},
	}
	p.Stages[1].Shards[0].Vocab = plan.Range{}
	return p
}

// Several sequences at once, on any plan, are what each is alone on one rank:
// also while others are cancelled in mid-answer, and after.
func TestSequencesTogetherOnStages(t *testing.T) {
	path := tiny(t, modeltest.Options{Layers: 4})
	alone := solo(t, path, Options{})
	prompts := []string{"Once upon a time", "B", "The little girl went to the park and then she saw a big dog there", "x y z"}
	var want [][]int32
	for _, p := range prompts {
		ids, err := tokensOf(t.Context(), alone, alone.tokens.Encode(p, true, false), 30)
		require.NoError(t, err)
		want = append(want, ids)
	}
	plans := append(stagedPlans(t, path, true), threeStages(t, path))
	for _, p := range append(plans, manyPlans(t, path)[:3]...) {
		t.Run(fmt.Sprintf("%s rank 0 of %v", p.Kind(), p.Stages[0].Ranks), func(t *testing.T) {
			e := cluster(t, path, p.World(), Options{Plan: &p, Sequences: 3})[0]
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			cancelled := make(chan error, 1)
			go func() {
				n := 0
				_, err := e.Chat(ctx, Request{Prompt: "Nobody will read this", IgnoreEnd: true}, func(Delta) {
					if n++; n == 5 {
						cancel()
					}
				})
				cancelled <- err
			}()
			got := make([][]int32, len(prompts))
			done := make(chan error, len(prompts))
			for i, prompt := range prompts {
				go func() {
					var err error
					got[i], err = tokensOf(t.Context(), e, e.tokens.Encode(prompt, true, false), 30)
					done <- err
				}()
			}
			for range prompts {
				require.NoError(t, <-done)
			}
			require.ErrorIs(t, <-cancelled, context.Canceled)
			for i := range prompts {
				requireSame(t, alone, alone.tokens.Encode(prompts[i], true, false), want[i], got[i])
			}
		})
	}
}

// tokensOf continues a prompt greedily by max tokens.
func tokensOf(ctx context.Context, e *Engine, prompt []int32, max int) (ids []int32, err error) {
	q := &sequence{ctx: ctx, prompt: prompt, max: max, end: e.tokens.IsEOG, banEnd: e.ends,
		sampler: sample.New(sample.Params{}), out: make(chan int32, max)}
	if err := e.submit(ctx, q); err != nil {
		return nil, err
	}
	for id := range q.out {
		ids = append(ids, id)
	}
	return ids, q.err
}

// requireSame allows an answer to leave that of one rank where that had two tokens
// nearly alike: keys and values are kept in F16, so a sum's last bit may become a
// step of 2^-11, a thousandth of a logit's spread.
func requireSame(t *testing.T, alone *Engine, prompt, want, got []int32) {
	t.Helper()
	require.Len(t, got, len(want))
	for i := range want {
		if want[i] == got[i] {
			continue
		}
		_, err := tokensOf(t.Context(), alone, append(slices.Clone(prompt), want[:i]...), 1)
		require.NoError(t, err)
		l := slices.Clone(alone.rank.logits[:alone.rank.arch.Params().Vocab])
		for _, id := range alone.ends { // banned, so minus infinity
			l[id] = 0
		}
		spread := slices.Max(l) - slices.Min(l)
		require.Less(t, l[want[i]]-l[got[i]], 5e-3*spread, "token %d", i)
		return // from here on both continue another text
	}
}

// A prompt of several steps fills all stages, and closing the engine with steps
// under way ends all ranks in order.
func TestCloseWithStepsUnderWay(t *testing.T) {
	path := tiny(t, modeltest.Options{Layers: 4, Context: 2048})
	for _, p := range stagedPlans(t, path, true) {
		engines := cluster(t, path, p.World(), Options{Plan: &p, Sequences: 2})
		ends := make(chan error, 2)
		begun := make(chan struct{}, 1)
		for range 2 {
			go func() {
				_, err := engines[0].Chat(t.Context(), Request{Prompt: prompt, IgnoreEnd: true}, func(Delta) {
					select {
					case begun <- struct{}{}:
					default:
					}
				})
				ends <- err
			}()
		}
		<-begun
		require.NoError(t, engines[0].Close())
		for range 2 {
			require.ErrorIs(t, <-ends, ErrClosed)
		}
		for _, e := range engines[1:] {
			select {
			case <-e.done:
			case <-time.After(10 * time.Second):
				t.Fatal("a rank goes on after the leader has finished")
			}
			require.ErrorIs(t, e.err, errFinished)
		}
	}
}

// A lost rank ends the answer on every plan.
func TestLostStageEndsTheAnswer(t *testing.T) {
	path := tiny(t, modeltest.Options{Layers: 4, Context: 2048})
	for _, p := range stagedPlans(t, path, true) {
		engines := cluster(t, path, p.World(), Options{Plan: &p})
		n := 0
		_, err := engines[0].Chat(t.Context(), Request{Prompt: prompt, IgnoreEnd: true}, func(Delta) {
			if n++; n == 3 {
				go engines[p.World()-1].Close()
			}
		})
		require.Error(t, err)
	}
}

// With more ranks than KV heads, several hold the same one, with its cache.
func TestMoreRanksThanKVHeads(t *testing.T) {
	path := tiny(t, modeltest.Options{Heads: 8, KVHeads: 2, FFN: 256})
	want := logits(t, solo(t, path, Options{}))
	for _, world := range []int{3, 4, 5, 8} {
		require.Less(t, errorOf(logits(t, cluster(t, path, world, Options{})[0]), want), 1e-6, "%d ranks", world)
	}
}
