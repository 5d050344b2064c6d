package inference

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"daisy/inference/chat"
	"daisy/inference/gguf"
	"daisy/inference/model"
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

func TestChatReusesThePrefix(t *testing.T) {
	e := solo(t, tiny(t, modeltest.Options{}), Options{})
	turns := []chat.Message{{Role: "user", Content: "A first question, long enough to matter"}}
	first, _ := ask(t, e, Request{Messages: turns, MaxTokens: 10, IgnoreEnd: true})
	turns = append(turns, chat.Message{Role: "assistant", Content: first}, chat.Message{Role: "user", Content: "And a second"})
	again, stats := ask(t, e, Request{Messages: turns, MaxTokens: 10, IgnoreEnd: true})
	require.Greater(t, stats.CachedTokens, 30)
	fresh, _ := ask(t, solo(t, tiny(t, modeltest.Options{}), Options{}), Request{Messages: turns, MaxTokens: 10, IgnoreEnd: true})
	require.Equal(t, fresh, again)
}

// A chat that begins as another one did, which still holds its slot, does not
// compute the common part again: on any number of ranks.
func TestChatsShareAPrefix(t *testing.T) {
	path := tiny(t, modeltest.Options{})
	system := "This long system prompt is the same in every chat and need not be computed twice. "
	want, _ := ask(t, solo(t, path, Options{}), Request{Prompt: system + "Second", MaxTokens: 12, IgnoreEnd: true})
	for world := 1; world <= 2; world++ {
		e := cluster(t, path, world, Options{Sequences: 2})[0]
		ctx, cancel := context.WithCancel(context.Background())
		begun, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			first := true
			_, _ = e.Chat(ctx, Request{Prompt: system + "First", IgnoreEnd: true}, func(Delta) {
				if first {
					first = false
					close(begun)
				}
			})
		}()
		<-begun
		got, stats := ask(t, e, Request{Prompt: system + "Second", MaxTokens: 12, IgnoreEnd: true})
		cancel()
		<-ended
		require.Equal(t, want, got)
		require.GreaterOrEqual(t, stats.CachedTokens, len(system))
	}
}

// A chat goes on in the slot that holds it; another takes the slot that was
// unused for longest, not that one.
func TestSlotChoice(t *testing.T) {
	long := make([]int32, 100)
	e := &Engine{slots: []*slot{{id: 0, tokens: long, used: 1}, {id: 1, tokens: []int32{7, 8}, used: 2}, {id: 2, used: 3}}}
	free, source := e.chooseSlot(append(long[:100:100], 1, 2))
	require.Equal(t, 0, free.id, "its own")
	require.Equal(t, 0, source.id)
	free, _ = e.chooseSlot([]int32{9, 9, 9})
	require.Equal(t, 0, free.id, "the oldest")
	e.slots[0].seq = &sequence{}
	free, source = e.chooseSlot(long)
	require.Equal(t, 1, free.id)
	require.Equal(t, 0, source.id)
	e.slots[1].seq, e.slots[2].seq = &sequence{}, &sequence{}
	free, _ = e.chooseSlot(long)
	require.Nil(t, free)
}

// While others decode, a long prompt goes in by chunks.
func TestLongPromptDoesNotStallOthers(t *testing.T) {
	e := &Engine{info: Info{ContextLength: 4096}}
	decoding := &sequence{pending: []int32{1}}
	prefilling := &sequence{pending: make([]int32, 3000)}
	e.slots = []*slot{{id: 0, seq: decoding, tokens: make([]int32, 300)}, {id: 1, seq: prefilling}}
	decoding.slot, prefilling.slot = e.slots[0], e.slots[1]
	e.nextStep()
	require.Len(t, e.batch.tokens, 1+chunk)
	require.Equal(t, []*sequence{decoding}, e.who)
	require.Equal(t, []model.Run{{Slot: 0, Start: 300, N: 1, KV: 512}, {Slot: 1, N: chunk, KV: 128}}, e.batch.runs)
	e.nextStep() // nothing was sampled: nobody decodes
	require.Len(t, e.batch.tokens, maxBatch)
}

// Nor does a long prompt keep a short one waiting, or two long ones each other.
func TestPromptsShareTheBatch(t *testing.T) {
	e := &Engine{info: Info{ContextLength: 8192}}
	for i, n := range []int{3000, 5, 4000} {
		e.slots = append(e.slots, &slot{id: i, seq: &sequence{pending: make([]int32, n)}})
		e.slots[i].seq.slot = e.slots[i]
	}
	e.nextStep()
	require.Equal(t, []*sequence{e.slots[1].seq}, e.who, "the short one is through")
	require.Len(t, e.batch.tokens, maxBatch)
	require.Greater(t, len(e.slots[0].tokens), maxBatch/3)
	require.Greater(t, len(e.slots[2].tokens), maxBatch/3)
}

// A request that waits for its turn goes as soon as it is cancelled.
func TestCancelledWhileWaiting(t *testing.T) {
	e := solo(t, tiny(t, modeltest.Options{Context: 4096}), Options{})
	running, stop := context.WithCancel(context.Background())
	begun := make(chan struct{})
	var g errgroup.Group
	chatUntil := func(ctx context.Context, emit func(Delta)) {
		g.Go(func() error {
			_, err := e.Chat(ctx, Request{Prompt: prompt, IgnoreEnd: true}, emit)
			if !errors.Is(err, context.Canceled) {
				return fmt.Errorf("ended with %v", err)
			}
			return nil
		})
	}
	var once sync.Once
	chatUntil(running, func(Delta) { once.Do(func() { close(begun) }) })
	<-begun
	chatUntil(running, func(Delta) {}) // waits for the slot
	ctx, cancel := context.WithCancel(context.Background())
	q, _, err := e.newSequence(ctx, Request{Prompt: prompt})
	require.NoError(t, err)
	require.NoError(t, e.submit(ctx, q)) // waits behind it
	cancel()
	for range q.out { // ends while the first still runs
	}
	require.ErrorIs(t, q.err, context.Canceled)
	stop()
	require.NoError(t, g.Wait())
}

// A decode step allocates nothing in Go, on one rank or in a cluster.
func TestDecodeAllocatesNothing(t *testing.T) {
	path := tiny(t, modeltest.Options{})
	for world := 1; world <= 2; world++ {
		e := cluster(t, path, world, Options{})[0]
		allocations := func(round, gen int) uint64 {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, _, err := e.Measure(context.Background(), round, 1, 8, gen)
			require.NoError(t, err)
			runtime.ReadMemStats(&after)
			return after.Mallocs - before.Mallocs
		}
		allocations(0, 240) // records the passes
		few, many := allocations(1, 40), allocations(2, 240)
		require.Less(t, float64(many)-float64(few), 0.1*200, "%d ranks: %d against %d allocations", world, many, few)
	}
}

// Several requests at once give what each gives alone.
func TestConcurrentSequences(t *testing.T) {
	path := tiny(t, modeltest.Options{})
	prompts := []string{"one", "a second prompt", "the third prompt is longer than the others by far", "4", "five and more"}
	alone := map[string]string{}
	for _, p := range prompts {
		alone[p], _ = ask(t, solo(t, path, Options{}), Request{Prompt: p, MaxTokens: 30, IgnoreEnd: true})
	}
	for world := 1; world <= 2; world++ {
		e := cluster(t, path, world, Options{Sequences: 3})[0]
		var g errgroup.Group
		for _, p := range prompts {
			g.Go(func() error {
				var b strings.Builder
				_, err := e.Chat(context.Background(), Request{Prompt: p, MaxTokens: 30, IgnoreEnd: true},
					func(d Delta) { b.WriteString(d.Text) })
				if err == nil && b.String() != alone[p] {
					err = fmt.Errorf("%q: %q, alone %q", p, b.String(), alone[p])
				}
				return err
			})
		}
		require.NoError(t, g.Wait())
	}
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

func TestCancelledRequestKeepsItsText(t *testing.T) {
	e := solo(t, tiny(t, modeltest.Options{}), Options{})
	ctx, cancel := context.WithCancel(context.Background())
	n := 0
	stats, err := e.Chat(ctx, Request{Prompt: prompt, IgnoreEnd: true}, func(d Delta) {
		if n += len(d.Text); n > 5 {
			cancel()
		}
	})
	require.ErrorIs(t, err, context.Canceled)
	require.Positive(t, stats.GeneratedTokens)
	_, after := ask(t, e, Request{Prompt: prompt, MaxTokens: 3, IgnoreEnd: true})
	require.Equal(t, 3, after.GeneratedTokens)
}

func TestContextFull(t *testing.T) {
	e := solo(t, tiny(t, modeltest.Options{}), Options{Context: 64})
	_, stats := ask(t, e, Request{Prompt: "hello", IgnoreEnd: true})
	require.Equal(t, StopFull, stats.Stop)
	require.Equal(t, 64, stats.PromptTokens+stats.GeneratedTokens-1)
	_, err := e.Chat(context.Background(), Request{Prompt: strings.Repeat("x", 100)}, func(Delta) {})
	require.ErrorIs(t, err, ErrContextFull)
}

// When a conversation outgrows the context, its oldest turns make room, the
// system message stays, and the caller is told.
func TestOldestTurnsMakeRoom(t *testing.T) {
	e := solo(t, tiny(t, modeltest.Options{}), Options{Context: 256})
	messages := []chat.Message{{Role: "system", Content: "Be kind."}}
	for i := range 8 {
		messages = append(messages, chat.Message{Role: "user", Content: fmt.Sprintf("Question number %d", i)},
			chat.Message{Role: "assistant", Content: "An answer of some length"})
	}
	messages = append(messages, chat.Message{Role: "user", Content: "The last"})
	p, err := e.prompt(context.Background(), Request{Messages: messages})
	require.NoError(t, err)
	require.LessOrEqual(t, len(p.tokens), 256-64)
	text := strings.ReplaceAll(e.tokens.Decode(p.tokens), "▁", " ") // the tiny vocabulary has no token for it
	require.Contains(t, text, "Be kind.")
	require.Contains(t, text, "The last")
	require.NotContains(t, text, "number 0")
	require.Contains(t, text, "number 7")
	require.Positive(t, p.dropped)
	require.Zero(t, p.dropped%2, "whole turns")
	_, stats := ask(t, e, Request{Messages: messages, MaxTokens: 3})
	require.Positive(t, stats.DroppedMessages)

	_, err = e.Chat(context.Background(), Request{Messages: []chat.Message{{Role: "user", Content: strings.Repeat("x", 300)}}}, func(Delta) {})
	require.ErrorIs(t, err, ErrContextFull)
}

// While turns keep making room, most questions still find their beginning in the
// KV cache.
func TestDroppedTurnsKeepThePrefix(t *testing.T) {
	e := solo(t, tiny(t, modeltest.Options{Context: 2048}), Options{Context: 1024})
	var messages []chat.Message
	reused, dropped := 0, 0
	for i := range 60 {
		messages = append(messages, chat.Message{Role: "user", Content: fmt.Sprintf("Question number %d", i)})
		_, stats := ask(t, e, Request{Messages: messages, MaxTokens: 2, IgnoreEnd: true})
		if stats.DroppedMessages > 0 {
			dropped++
			if stats.CachedTokens > stats.PromptTokens/2 {
				reused++
			}
		}
		messages = append(messages, chat.Message{Role: "assistant", Content: "An answer of some length"})
	}
	require.Greater(t, dropped, 20)
	require.Greater(t, reused, dropped*2/3)
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

func TestRanksMustHaveTheSameFile(t *testing.T) {
	a, b := tiny(t, modeltest.Options{}), tiny(t, modeltest.Options{Seed: 7})
	var g errgroup.Group
	errs := make([]error, 2)
	for r, tr := range mem.New(2) {
		g.Go(func() error {
			_, errs[r] = Load(context.Background(), []string{a, b}[r], Options{Threads: 1, Group: rdma.NewGroup(tr, 1)})
			return nil
		})
	}
	require.NoError(t, g.Wait())
	for _, err := range errs { // each finds out by itself or is told by the other
		require.ErrorContains(t, err, "rank 1 has another model file")
	}
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

func TestCloseEndsWaitingRequests(t *testing.T) {
	e := solo(t, tiny(t, modeltest.Options{}), Options{})
	started := make(chan struct{})
	errs := make(chan error, 2)
	for range 2 { // the second waits for the slot
		go func() {
			var once bool
			_, err := e.Chat(context.Background(), Request{Prompt: prompt, IgnoreEnd: true}, func(Delta) {
				if !once {
					once = true
					started <- struct{}{}
				}
			})
			errs <- err
		}()
	}
	<-started
	require.NoError(t, e.Close())
	for range 2 {
		err := <-errs
		if err != nil {
			require.ErrorIs(t, err, ErrClosed)
		}
	}
}

func TestLogitsAreNumbers(t *testing.T) {
	for _, x := range logits(t, solo(t, tiny(t, modeltest.Options{}), Options{})) {
		require.False(t, math.IsNaN(float64(x)) || math.IsInf(float64(x), 0))
	}
}

// A template that knows no system role gets the system prompt all the same.
func TestSystemPromptReachesTemplatesWithoutOne(t *testing.T) {
	const template = "{% for m in messages %}{% if m['role'] == 'system' %}{{ raise_exception('no system role') }}{% endif %}" +
		"{{ '[' + m['role'] + ']' + m['content'] }}{% endfor %}"
	e := solo(t, tiny(t, modeltest.Options{KV: []gguf.KV{{Key: "tokenizer.chat_template", Value: template}}}), Options{})
	text, err := e.render([]chat.Message{{Role: "system", Content: "Be kind."}, {Role: "user", Content: "Hi"}})
	require.NoError(t, err)
	require.Equal(t, "[user]Be kind.\n\nHi", text)
}

// Options that cannot work are refused, before memory is taken.
func TestNonsenseOptions(t *testing.T) {
	path := tiny(t, modeltest.Options{})
	for _, opt := range []Options{{Threads: -1}, {Threads: 600}, {Context: -1}, {Context: 1 << 20}, {Sequences: -1},
		{Sequences: 1000}, {Cache: 7}, {Shares: []float64{1, 1}}} {
		_, err := Load(context.Background(), path, opt)
		require.Error(t, err, "%+v", opt)
	}
}

// Every type that a file can name is either computed or refused: ggml itself
// would crash the process on some.
func TestEveryTypeOfWeights(t *testing.T) {
	ran := 0
	for kind := gguf.Type(0); kind < 64; kind++ {
		if !kind.Known() {
			continue
		}
		for _, name := range []string{"token_embd.weight", "blk.0.attn_q.weight", "blk.1.ffn_down.weight", "output.weight"} {
			kv, tensors := modeltest.Build(modeltest.Options{Dim: 256, FFN: 256, Heads: 8, KVHeads: 8, Context: 64})
			for i := range tensors {
				if tensors[i].Name == name {
					n := tensors[i].Shape[0] * tensors[i].Shape[1]
					tensors[i].Type, tensors[i].Data = kind, make([]byte, n/kind.BlockSize()*kind.BlockBytes())
				}
			}
			path := filepath.Join(t.TempDir(), "model.gguf")
			var b bytes.Buffer
			require.NoError(t, gguf.Write(&b, kv, tensors))
			require.NoError(t, os.WriteFile(path, b.Bytes(), 0o600))
			e, err := Load(context.Background(), path, Options{Threads: 1})
			if err != nil {
				require.ErrorIs(t, err, ErrUnsupported, "%s as %s", name, kind)
				continue
			}
			_, _ = ask(t, e, Request{Prompt: "Hi", MaxTokens: 2})
			require.NoError(t, e.Close())
			ran++
		}
	}
	require.GreaterOrEqual(t, ran, 4*20)
}

// More memory than the machine has is refused before it is taken.
func TestMemoryIsBounded(t *testing.T) {
	path := tiny(t, modeltest.Options{Context: 1 << 29})
	_, err := Load(context.Background(), path, Options{Context: 1 << 29, Sequences: 64})
	require.ErrorIs(t, err, ErrNoMemory)
	require.ErrorContains(t, err, "GB")
}

// What is no model, or no whole one, is one clear line.
func TestBrokenFiles(t *testing.T) {
	good, err := os.ReadFile(tiny(t, modeltest.Options{}))
	require.NoError(t, err)
	for name, data := range map[string][]byte{
		"empty":           {},
		"no GGUF":         []byte("This is no model at all, just a line of text."),
		"cut in header":   good[:200],
		"cut in tensors":  good[:len(good)-1000],
		"absurd count":    append(append(append([]byte{}, good[:8]...), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f), good[16:]...),
		"absurd KV count": append(append(append([]byte{}, good[:16]...), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f), good[24:]...),
		"unknown version": append(append(append([]byte{}, good[:4]...), 99, 0, 0, 0), good[8:]...),
		"directory":       nil,
		"no such file":    nil,
	} {
		path := filepath.Join(t.TempDir(), "model.gguf")
		switch name {
		case "directory":
			require.NoError(t, os.Mkdir(path, 0o700))
		case "no such file":
		default:
			require.NoError(t, os.WriteFile(path, data, 0o600))
		}
		_, err := Load(context.Background(), path, Options{})
		require.Error(t, err, name)
		require.NotContains(t, err.Error(), "\n", name)
		require.Contains(t, err.Error(), "model.gguf", name)
	}
}
