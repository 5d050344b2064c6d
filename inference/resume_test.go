package inference

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"daisy/inference/chat"
	"daisy/inference/gguf"
	"daisy/inference/modeltest"
	"daisy/inference/sample"
	"daisy/rdma"
	"daisy/rdma/mem"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

// errUnplugged ends the engines of these tests.
var errUnplugged = errors.New("unplugged")

// doomed is rank 0 of two; rank 1 computes that many steps and is then unplugged,
// when it has heard of the next: the tokens of those steps have been sampled.
func doomed(t *testing.T, path string, steps int, opt Options) *Engine {
	t.Helper()
	engines := make([]*Engine, 2)
	var g errgroup.Group
	for r, tr := range mem.New(2) {
		g.Go(func() (err error) {
			o := opt
			o.Threads, o.Group = 1, rdma.NewGroup(tr, 1)
			engines[r], err = Load(context.Background(), path, o)
			return err
		})
	}
	require.NoError(t, g.Wait())
	done := make(chan struct{})
	go func() { // the cleanup waits for it
		defer close(done)
		r := engines[1].rank
		var s step
		for range steps {
			if r.obeyOne(context.Background(), &s, engines[1].info.ContextLength) != nil {
				return // the answer ended before
			}
		}
		if r.hear(context.Background(), r.head[:]) == nil {
			r.group.Abort(errUnplugged)
		}
	}()
	t.Cleanup(func() {
		_ = engines[0].Close()
		<-done
		_ = engines[1].Close()
	})
	return engines[0]
}

// shown collects what a person sees of an answer.
type shown struct{ text, reasoning, tool strings.Builder }

func (s *shown) emit(d Delta) {
	s.text.WriteString(d.Text)
	s.reasoning.WriteString(d.Reasoning)
	s.tool.WriteString(d.ToolCall)
}

func (s *shown) all() [3]string {
	return [3]string{s.text.String(), s.reasoning.String(), s.tool.String()}
}

// goOn resumes and reads.
func goOn(t *testing.T, e *Engine, i *Interrupted, emit func(Delta)) (Stats, error) {
	t.Helper()
	a, err := e.Resume(t.Context(), i)
	if err != nil {
		return i.Stats(), err
	}
	return a.Read(emit)
}

// thinking is a tiny model whose two markers are thinking tags. Prefill rounds keys,
// values and probabilities in other places than decoding, and a draw that falls next
// to the bound between two tokens may then give the other. Its attention adds so
// little that this does not happen, and a thousand times as much as the rounding, so
// that a wrong KV cache shows.
func thinking(t *testing.T) string {
	t.Helper()
	opt := modeltest.Options{Attention: 3e-3}
	kv, _ := modeltest.Build(opt)
	at := slices.IndexFunc(kv, func(kv gguf.KV) bool { return kv.Key == "tokenizer.ggml.tokens" })
	tokens := slices.Clone(kv[at].Value.([]string))
	copy(tokens[len(tokens)-2:], []string{"<think>", "</think>"})
	opt.KV = []gguf.KV{{Key: "tokenizer.ggml.tokens", Value: tokens}}
	return tiny(t, opt)
}

// resumed is the model and the requests of TestResumeAtEveryToken.
func resumed(t *testing.T) (path string, requests map[string]Request) {
	path = thinking(t)
	seeded := Request{Prompt: prompt, MaxTokens: 48, IgnoreEnd: true, Sampling: sample.Params{
		Temperature: 1, TopK: 40, TopP: 0.95, RepeatPenalty: 1.3, FrequencyPenalty: 0.2, PenaltyWindow: 24,
		LogitBias: map[int32]float32{259: 6, 260: 6},
	}}
	greedy := seeded
	greedy.Sampling = sample.Params{}
	e := solo(t, path, Options{})
	var whole shown
	for whole.reasoning.Len() < 10 || whole.text.Len() < 20 { // until it thinks, and says something
		seeded.Sampling.Seed++
		require.Less(t, seeded.Sampling.Seed, uint64(200))
		whole = shown{}
		_, err := e.Chat(t.Context(), seeded, whole.emit)
		require.NoError(t, err)
	}
	stops, text := seeded, []rune(whole.text.String())
	require.Greater(t, len(text), 12)
	stops.Stops = []string{string(text[4:8]) + "never", string(text[len(text)-6 : len(text)-3])}
	return path, map[string]Request{"greedy": greedy, "seeded": seeded, "stops": stops}
}

// Wherever the engine ends, the answer goes on as if it had not: the same text, and
// none of it twice. Cut are half characters, thinking, the start of a stop string,
// and answers without a token.
func TestResumeAtEveryToken(t *testing.T) {
	path, requests := resumed(t)
	for name, req := range requests {
		t.Run(name, func(t *testing.T) {
			var want shown
			whole, err := solo(t, path, Options{}).Chat(t.Context(), req, want.emit)
			require.NoError(t, err)
			half, thought, held := 0, 0, 0
			for cut := range whole.GeneratedTokens {
				var got shown
				before, err := doomed(t, path, cut, Options{}).Chat(t.Context(), req, got.emit)
				if err == nil && req.Stops != nil { // the stop string came first
					require.Equal(t, want.all(), got.all())
					continue
				}
				require.ErrorContains(t, err, errUnplugged.Error())
				var i *Interrupted
				require.ErrorAs(t, err, &i)
				require.Len(t, i.generated, cut)
				require.Equal(t, cut, before.GeneratedTokens)
				early := got.all()
				stats, err := goOn(t, solo(t, path, Options{}), i, got.emit)
				require.NoError(t, err)
				require.Equal(t, want.all(), got.all(), "cut after %d tokens", cut)
				for k, part := range want.all() {
					require.True(t, strings.HasPrefix(part, early[k]))
				}
				require.Equal(t, whole.PromptTokens, stats.PromptTokens)
				require.Equal(t, whole.Stop, stats.Stop)
				if req.Stops == nil { // else some more were under way
					require.Equal(t, whole.GeneratedTokens, stats.GeneratedTokens)
				}
				if cut > 0 {
					require.Equal(t, 1, stats.Resumed.Times)
					require.Equal(t, whole.PromptTokens+cut, stats.Resumed.Tokens)
					require.Positive(t, stats.Resumed.Prefill)
					require.Equal(t, before.Prefill, stats.Prefill)
				} else {
					require.Zero(t, stats.Resumed)
				}

				// What this cut was in the middle of.
				if cut > 0 && i.generated[cut-1] >= 3+0xC0 && i.generated[cut-1] < 3+0xF5 {
					half++
				}
				if len(early[1]) > 0 && len(early[1]) < want.reasoning.Len() {
					thought++
				}
				if req.Stops != nil && early[0] == string([]rune(want.text.String())[:4]) {
					held++
				}
			}
			t.Logf("in half a character %d, in thinking %d, before a stop %d", half, thought, held)
			if name != "greedy" {
				require.Positive(t, half)
			}
			if name == "seeded" {
				require.Positive(t, thought)
			}
			if name == "stops" {
				require.Greater(t, held, 1)
			}
		})
	}
}

// An engine that ends while it prefills has emitted nothing, or while it prefills
// again nothing new.
func TestResumeWhilePrefilling(t *testing.T) {
	path := tiny(t, modeltest.Options{Context: 2048, Attention: 3e-3})
	req := Request{Prompt: strings.Repeat("abcdefgh ", 180), MaxTokens: 24, IgnoreEnd: true} // several steps
	var want shown
	_, err := solo(t, path, Options{}).Chat(t.Context(), req, want.emit)
	require.NoError(t, err)

	var got shown
	_, err = doomed(t, path, 2, Options{}).Chat(t.Context(), req, got.emit)
	var i *Interrupted
	require.ErrorAs(t, err, &i)
	require.Empty(t, i.generated)

	_, err = goOn(t, doomed(t, path, 10, Options{}), i, got.emit)
	require.ErrorAs(t, err, &i)
	n := len(i.generated)
	require.Positive(t, n)
	_, err = goOn(t, doomed(t, path, 2, Options{}), i, got.emit) // prefilling again
	require.ErrorAs(t, err, &i)
	require.Len(t, i.generated, n)

	stats, err := goOn(t, solo(t, path, Options{}), i, got.emit)
	require.NoError(t, err)
	require.Equal(t, want.all(), got.all())
	require.Equal(t, 1, stats.Resumed.Times, "what was given up is not counted")
	require.Equal(t, 24, stats.GeneratedTokens)
}

// The time between the loss and the new engine is in no figure.
func TestDecodeTimeWithoutThePause(t *testing.T) {
	path := tiny(t, modeltest.Options{})
	req := Request{Prompt: prompt, MaxTokens: 20, IgnoreEnd: true}
	var i *Interrupted
	before, err := doomed(t, path, 10, Options{}).Chat(t.Context(), req, func(Delta) {})
	require.ErrorAs(t, err, &i)
	e := solo(t, path, Options{})
	from := time.Now()
	a, err := e.Resume(t.Context(), i)
	require.NoError(t, err)
	after, err := a.Read(func(Delta) {})
	require.NoError(t, err)
	spent := time.Since(from)
	require.LessOrEqual(t, after.Decode, before.Decode+spent-after.Resumed.Prefill)
	require.Greater(t, after.Decode, before.Decode)
	require.InEpsilon(t, 18/after.Decode.Seconds(), after.DecodeTokensPerSecond(), 1e-9, "19 intervals, one of them the pause")
}

// Requests that wait for their turn are handed over too, in the order in which they
// came, as is one that comes when the engine has ended.
func TestResumeWaitingRequests(t *testing.T) {
	path := tiny(t, modeltest.Options{})
	e := doomed(t, path, 6, Options{})
	request := func(k int) Request {
		return Request{Prompt: fmt.Sprintf("%s, question %d", prompt, k), MaxTokens: 12, IgnoreEnd: true}
	}
	got := make([]shown, 4)
	interrupted := make([]*Interrupted, 4)
	answers := make([]*Answer, 3)
	for k := range answers {
		var err error
		if answers[k], err = e.start(t.Context(), request(k)); err != nil { // it has ended already
			require.ErrorAs(t, err, &interrupted[k])
		}
	}
	for k, a := range answers {
		if a != nil {
			_, err := a.Read(got[k].emit)
			require.ErrorAs(t, err, &interrupted[k])
		}
	}
	<-e.Done()
	_, err := e.Chat(t.Context(), request(3), got[3].emit)
	require.ErrorAs(t, err, &interrupted[3])
	require.NotEmpty(t, interrupted[0].generated)

	next := solo(t, path, Options{})
	answers = answers[:0]
	for _, i := range interrupted {
		a, err := next.Resume(t.Context(), i)
		require.NoError(t, err)
		answers = append(answers, a)
	}
	var begun []time.Time
	for k, a := range answers {
		_, err := a.Read(got[k].emit)
		require.NoError(t, err)
		begun = append(begun, a.seq.started)
		var want shown
		_, err = solo(t, path, Options{}).Chat(t.Context(), request(k), want.emit)
		require.NoError(t, err)
		require.Equal(t, want.all(), got[k].all())
	}
	require.True(t, slices.IsSortedFunc(begun, time.Time.Compare), "in order")
}

func TestResumeRefused(t *testing.T) {
	path := tiny(t, modeltest.Options{})
	req := Request{Prompt: prompt, MaxTokens: 20, IgnoreEnd: true}
	var got, want shown
	_, err := solo(t, path, Options{}).Chat(t.Context(), req, want.emit)
	require.NoError(t, err)
	_, err = doomed(t, path, 5, Options{}).Chat(t.Context(), req, got.emit)
	var i *Interrupted
	require.ErrorAs(t, err, &i)

	_, err = solo(t, tiny(t, modeltest.Options{Seed: 7}), Options{}).Resume(t.Context(), i)
	require.ErrorIs(t, err, ErrOtherModel)
	_, err = cluster(t, path, 2, Options{})[1].Resume(t.Context(), i)
	require.ErrorContains(t, err, "rank 1 follows")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e := solo(t, path, Options{})
	if a, err := e.Resume(ctx, i); err == nil { // it was quick
		_, err = a.Read(got.emit)
		require.ErrorIs(t, err, context.Canceled)
		return
	}
	_, err = goOn(t, e, i, got.emit) // after all that it still can go on
	require.NoError(t, err)
	require.Equal(t, want.all(), got.all())
	_, err = e.Resume(t.Context(), i)
	require.ErrorIs(t, err, errTaken)
	require.Zero(t, i.Flush())
}

// Given up, an answer still shows what was held back.
func TestInterruptedShowsWhatWasHeldBack(t *testing.T) {
	path := tiny(t, modeltest.Options{})
	req := Request{Prompt: prompt, MaxTokens: 20, IgnoreEnd: true}
	var want, got shown
	_, err := solo(t, path, Options{}).Chat(t.Context(), req, want.emit)
	require.NoError(t, err)
	req.Stops = []string{want.text.String() + "never"}
	_, err = doomed(t, path, 12, Options{}).Chat(t.Context(), req, got.emit)
	var i *Interrupted
	require.ErrorAs(t, err, &i)
	require.Empty(t, got.text.String())
	got.emit(i.Flush())
	require.NotEmpty(t, got.text.String())
	require.True(t, strings.HasPrefix(want.text.String(), strings.TrimSuffix(got.text.String(), "\uFFFD")))
	_, err = solo(t, path, Options{}).Resume(t.Context(), i)
	require.ErrorIs(t, err, errTaken)
}

// In a shorter context an answer ends where that is full; one without a token
// begins anew, and its oldest turns make room.
func TestResumeInAShorterContext(t *testing.T) {
	path := tiny(t, modeltest.Options{})
	req := Request{Prompt: prompt, MaxTokens: 60, IgnoreEnd: true}
	cutAt := func(n int, req Request) (i *Interrupted, got *shown) {
		got = new(shown)
		_, err := doomed(t, path, n, Options{}).Chat(t.Context(), req, got.emit)
		require.ErrorAs(t, err, &i)
		return i, got
	}
	i, got := cutAt(20, req)
	nPrompt := len(i.prompt)
	stats, err := goOn(t, solo(t, path, Options{Context: nPrompt + 30}), i, got.emit)
	require.NoError(t, err)
	require.Equal(t, StopFull, stats.Stop)
	require.Equal(t, 31, stats.GeneratedTokens)

	i, got = cutAt(20, req)
	stats, err = goOn(t, solo(t, path, Options{Context: nPrompt + 20}), i, got.emit)
	require.NoError(t, err)
	require.Equal(t, StopFull, stats.Stop)
	require.Equal(t, 21, stats.GeneratedTokens, "it just fitted")

	i, got = cutAt(20, req)
	stats, err = goOn(t, solo(t, path, Options{Context: nPrompt + 10}), i, got.emit)
	require.NoError(t, err)
	require.Equal(t, StopFull, stats.Stop)
	require.Equal(t, 20, stats.GeneratedTokens)

	i, got = cutAt(0, req)
	_, err = goOn(t, solo(t, path, Options{Context: nPrompt}), i, got.emit)
	require.ErrorIs(t, err, ErrContextFull)
	messages := []chat.Message{}
	for k := range 6 {
		messages = append(messages, chat.Message{Role: "user", Content: fmt.Sprintf("Question number %d", k)},
			chat.Message{Role: "assistant", Content: "An answer"})
	}
	i, got = cutAt(0, Request{Messages: append(messages, chat.Message{Role: "user", Content: "The last"}), MaxTokens: 5, IgnoreEnd: true})
	require.Zero(t, i.Stats().DroppedMessages)
	stats, err = goOn(t, solo(t, path, Options{Context: 128}), i, got.emit)
	require.NoError(t, err)
	require.Positive(t, stats.DroppedMessages)
}
