package inference

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"daisy/inference/chat"
	"daisy/inference/gguf"
	"daisy/inference/modeltest"
	"daisy/inference/sample"
	"daisy/rdma"
	"daisy/rdma/mem"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const prompt = "Once upon a time there was a little girl who liked to play in the park"

// tiny writes a tiny model and returns its path.
func tiny(t testing.TB, opt modeltest.Options) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	modeltest.Write(t, path, opt)
	return path
}

// cluster loads the model on world ranks in this process; the first is rank 0.
func cluster(t testing.TB, path string, world int, opt Options) []*Engine {
	t.Helper()
	engines := make([]*Engine, world)
	var g errgroup.Group
	for r, tr := range mem.New(world) {
		g.Go(func() (err error) {
			o := opt
			o.Threads, o.Group = 1, rdma.NewGroup(tr, 1)
			engines[r], err = Load(context.Background(), path, o)
			return err
		})
	}
	require.NoError(t, g.Wait())
	followers := &errgroup.Group{}
	for _, e := range engines[1:] {
		followers.Go(func() error { return e.Follow(context.Background()) })
	}
	t.Cleanup(func() {
		for _, e := range engines {
			_ = e.Close()
		}
		_ = followers.Wait()
	})
	return engines
}

func solo(t testing.TB, path string, opt Options) *Engine {
	t.Helper()
	opt.Threads = 1
	e, err := Load(context.Background(), path, opt)
	require.NoError(t, err)
	t.Cleanup(func() { _ = e.Close() })
	return e
}

// ask returns the answer's text.
func ask(t testing.TB, e *Engine, req Request) (string, Stats) {
	t.Helper()
	var b strings.Builder
	stats, err := e.Chat(context.Background(), req, func(d Delta) {
		require.True(t, utf8.ValidString(d.Text))
		b.WriteString(d.Text)
	})
	require.NoError(t, err)
	return b.String(), stats
}

// A cluster's logits are those of one rank but for rounding: sums of partial
// products are added in another order. Each of the model's sums has a relative
// error near 2^-24 times its length's root, far below the bound.
func TestShardsComputeWhatOneRankDoes(t *testing.T) {
	const nmse = 1e-6
	for _, opt := range []modeltest.Options{
		{},
		{Tied: true},
		{RopeFactors: true, Heads: 8, KVHeads: 4},
		{Type: gguf.F16, Heads: 4, KVHeads: 4, FFN: 192},
		{Type: gguf.Q8_0, Heads: 8, KVHeads: 4, Layers: 3},
		{Type: gguf.Q4_0, Heads: 8, KVHeads: 4},
	} {
		path := tiny(t, opt)
		want := logits(t, solo(t, path, Options{}))
		for world := 2; world <= min(4, max(3, opt.KVHeads)); world++ {
			t.Run(fmt.Sprintf("%+v/ranks=%d", opt, world), func(t *testing.T) {
				got := logits(t, cluster(t, path, world, Options{})[0])
				bound := nmse
				if opt.Type != gguf.F32 {
					// Activations are rounded to 8 bits (or 11) before products,
					// so a last-bit difference can become a step of that size.
					bound = 2e-3
				}
				require.Less(t, errorOf(got, want), bound)
			})
		}
	}
}

// logits computes those of the prompt's last token.
func logits(t *testing.T, e *Engine) []float32 {
	t.Helper()
	_, _ = ask(t, e, Request{Prompt: prompt, MaxTokens: 1, IgnoreEnd: false})
	return append([]float32(nil), e.rank.logits[:e.rank.arch.Params().Vocab]...)
}

// errorOf is the normalised mean squared error.
func errorOf(got, want []float32) float64 {
	num, den := 0.0, 0.0
	for i := range want {
		d := float64(got[i] - want[i])
		num += d * d
		den += float64(want[i]) * float64(want[i])
	}
	return num / den
}

func TestGreedyAnswerIsTheSameOnAnyNumberOfRanks(t *testing.T) {
	path := tiny(t, modeltest.Options{})
	req := Request{Messages: []chat.Message{{Role: "user", Content: "Hello"}}, MaxTokens: 40, IgnoreEnd: true}
	want, stats := ask(t, solo(t, path, Options{}), req)
	require.Equal(t, 40, stats.GeneratedTokens)
	require.Equal(t, StopLength, stats.Stop)
	for world := 2; world <= 3; world++ {
		got, _ := ask(t, cluster(t, path, world, Options{})[0], req)
		require.Equal(t, want, got, "%d ranks", world)
	}
}

// Every rank holds its part and no more: the parts add up to the whole, tensors
// that all need (norms) apart.
func TestRanksHoldOnlyTheirShard(t *testing.T) {
	path := tiny(t, modeltest.Options{Heads: 8, KVHeads: 4, FFN: 256})
	whole := solo(t, path, Options{}).Info().WeightBytes
	engines := cluster(t, path, 2, Options{})
	a, b := engines[0].Info().WeightBytes, engines[1].Info().WeightBytes
	norms := int64(4 * 64 * (2*2 + 1))
	require.Equal(t, whole+norms, a+b)
	require.InEpsilon(t, a, b, 0.1)
}

func TestUnevenShares(t *testing.T) {
	path := tiny(t, modeltest.Options{Heads: 8, KVHeads: 4, FFN: 256})
	want := logits(t, solo(t, path, Options{}))
	engines := cluster(t, path, 2, Options{Shares: []float64{3, 1}})
	require.Less(t, errorOf(logits(t, engines[0]), want), 1e-6)
	require.Greater(t, engines[0].Info().WeightBytes, 2*engines[1].Info().WeightBytes)
}

// One prefill of the whole prompt, and the prompt a token at a time, agree but for
// the rounding of F16: prefill multiplies probabilities with values in products,
// decode sums values position by position.
func TestPrefillAgreesWithTokenByToken(t *testing.T) {
	path := tiny(t, modeltest.Options{})
	e := solo(t, path, Options{})
	ids := e.tokens.Encode(prompt, true, false)
	at := logits(t, e)

	other := solo(t, path, Options{})
	for n := 1; n <= len(ids); n++ { // each finds the tokens before it in the cache
		q := &sequence{ctx: context.Background(), prompt: ids[:n], max: 1, end: func(int32) bool { return false },
			sampler: sample.New(sample.Params{}), out: make(chan int32, 1)}
		other.requests <- q
		for range q.out {
		}
		require.NoError(t, q.err)
		require.Equal(t, n-1, q.stats.CachedTokens)
	}
	require.Less(t, errorOf(other.rank.logits[:len(at)], at), goldenError)
}

// A prompt longer than a batch is prefilled in chunks, over several shapes of
// pass; a cluster must agree with one rank there too.
func TestLongPromptsAcrossChunks(t *testing.T) {
	path := tiny(t, modeltest.Options{Context: 2048})
	long := Request{Prompt: strings.Repeat("abcdefgh ", 180), MaxTokens: 8, IgnoreEnd: true} // 1,620 tokens
	want, stats := ask(t, solo(t, path, Options{}), long)
	require.Greater(t, stats.PromptTokens, 3*maxBatch)
	got, _ := ask(t, cluster(t, path, 2, Options{})[0], long)
	require.Equal(t, want, got)
}

// A KV cache of 8 bits gives nearly what one of 16 does. Rounding to 8 bits is a
// relative error of up to 1/254 of a block's largest value.
func TestQuantisedCache(t *testing.T) {
	path := tiny(t, modeltest.Options{})
	plain, small := solo(t, path, Options{}), solo(t, path, Options{Cache: CacheQ8})
	require.Less(t, errorOf(logits(t, small), logits(t, plain)), 1e-3)
	require.Less(t, small.Info().CacheBytes, plain.Info().CacheBytes*6/10)
	require.Less(t, errorOf(logits(t, cluster(t, path, 2, Options{Cache: CacheQ8})[0]), logits(t, plain)), 1e-3)

	_, err := Load(context.Background(), tiny(t, modeltest.Options{HeadDim: 16}), Options{Cache: CacheQ8})
	require.ErrorIs(t, err, ErrUnsupported)
}

// A rank that is lost in mid-answer ends the request on the leader, which keeps
// what it has.
func TestLostRankEndsTheAnswer(t *testing.T) {
	engines := cluster(t, tiny(t, modeltest.Options{}), 3, Options{})
	n := 0
	_, err := engines[0].Chat(context.Background(), Request{Prompt: prompt, IgnoreEnd: true}, func(d Delta) {
		if n += len(d.Text); n > 5 && engines[2] != nil {
			_ = engines[2].Close()
			engines[2] = engines[1]
		}
	})
	require.Error(t, err)
	require.Contains(t, err.Error(), "rank 2")
	require.Positive(t, n)
	<-engines[0].Done()
	require.Error(t, engines[0].Err())
	_, err = engines[0].Chat(context.Background(), Request{Prompt: "x"}, func(Delta) {})
	require.Error(t, err)
}

// Close returns even when another rank has stopped answering in mid-step.
func TestCloseCutsOffARankThatDoesNotAnswer(t *testing.T) {
	path := tiny(t, modeltest.Options{})
	engines := make([]*Engine, 2)
	var g errgroup.Group
	for r, tr := range mem.New(2) {
		g.Go(func() (err error) {
			engines[r], err = Load(context.Background(), path, Options{Threads: 1, Group: rdma.NewGroup(tr, 1)})
			return err
		})
	}
	require.NoError(t, g.Wait())
	q, _, err := engines[0].newSequence(context.Background(), Request{Prompt: prompt})
	require.NoError(t, err)
	require.NoError(t, engines[0].submit(context.Background(), q))
	// Rank 1 hears of the step, and then nothing more is heard of it.
	require.NoError(t, engines[1].rank.group.Broadcast(context.Background(), 0, engines[1].rank.head[:]))
	require.NoError(t, engines[0].Close())
	for range q.out {
	}
	require.ErrorIs(t, q.err, ErrClosed)
	require.NoError(t, engines[1].Close())
}

func TestSamplingFollowsItsSeed(t *testing.T) {
	e := solo(t, tiny(t, modeltest.Options{}), Options{})
	req := func(seed uint64) Request {
		return Request{Prompt: prompt, MaxTokens: 20, IgnoreEnd: true, Sampling: sample.Params{Temperature: 1, TopK: 40, TopP: 0.9, Seed: seed}}
	}
	a, _ := ask(t, e, req(1))
	again, _ := ask(t, e, req(1))
	b, _ := ask(t, e, req(2))
	require.Equal(t, a, again)
	require.NotEqual(t, a, b)
}

func TestLogitsAreNumbers(t *testing.T) {
	for _, x := range logits(t, solo(t, tiny(t, modeltest.Options{}), Options{})) {
		require.False(t, math.IsNaN(float64(x)) || math.IsInf(float64(x), 0))
	}
}
