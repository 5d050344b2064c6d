package inference

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"

	"daisy/inference/chat"
	"daisy/inference/gguf"
	"daisy/inference/model"
	"daisy/inference/modeltest"
	"daisy/inference/plan"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

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
	e := &Engine{info: Info{ContextLength: 4096}, rank: &rank{plan: plan.Plan{Stages: make([]plan.Stage, 1)}}}
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
	e := &Engine{info: Info{ContextLength: 8192}, rank: &rank{plan: plan.Plan{Stages: make([]plan.Stage, 1)}}}
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

// A template that knows no system role gets the system prompt all the same.
func TestSystemPromptReachesTemplatesWithoutOne(t *testing.T) {
	const template = "{% for m in messages %}{% if m['role'] == 'system' %}{{ raise_exception('no system role') }}{% endif %}" +
		"{{ '[' + m['role'] + ']' + m['content'] }}{% endfor %}"
	e := solo(t, tiny(t, modeltest.Options{KV: []gguf.KV{{Key: "tokenizer.chat_template", Value: template}}}), Options{})
	text, err := e.render([]chat.Message{{Role: "system", Content: "Be kind."}, {Role: "user", Content: "Hi"}})
	require.NoError(t, err)
	require.Equal(t, "[user]Be kind.\n\nHi", text)
}
