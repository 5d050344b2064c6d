package session

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"daisy/app/history"
	"daisy/inference"
	"daisy/inference/chat"
)

// The library that announces nodes ends its own goroutine a second after its
// Shutdown has returned.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/grandcat/zeroconf.(*Server).probe"))
}

// askerFunc is an Asker that a test scripts.
type askerFunc func(context.Context, inference.Request, func(inference.Delta)) (inference.Stats, error)

func (f askerFunc) Chat(ctx context.Context, r inference.Request, emit func(inference.Delta)) (inference.Stats, error) {
	return f(ctx, r, emit)
}

// says answers with the words and remembers what it was asked.
func says(asked *[]inference.Request, words ...string) askerFunc {
	return func(_ context.Context, r inference.Request, emit func(inference.Delta)) (inference.Stats, error) {
		*asked = append(*asked, r)
		for _, w := range words {
			emit(inference.Delta{Text: w})
		}
		return inference.Stats{PromptTokens: 5, GeneratedTokens: len(words), Prefill: 1e9, Decode: 1e9}, nil
	}
}

func newSession(t *testing.T, system string) (*Session, int64) {
	t.Helper()
	store, err := history.Open(t.Context(), filepath.Join(t.TempDir(), "h.db"))
	require.NoError(t, err)
	s := New(Config{Store: store, System: system})
	t.Cleanup(func() {
		s.Close()
		require.NoError(t, store.Close())
	})
	c, err := store.CreateConversation(t.Context(), "")
	require.NoError(t, err)
	return s, c.ID
}

func TestAskStreamsAndKeeps(t *testing.T) {
	s, conv := newSession(t, "be brief")
	var asked []inference.Request
	s.Use(says(&asked, "Par", "is"), "tiny")
	require.Equal(t, "tiny", s.Model())

	var updates []Update
	m, err := s.Ask(t.Context(), conv, "capital of France?", func(u Update) { updates = append(updates, u) })
	require.NoError(t, err)
	require.Equal(t, "Paris", m.Content)
	require.Equal(t, history.StatusDone, m.Status)
	require.Equal(t, "tiny", m.Model)
	require.Equal(t, history.Stats{PromptTokens: 5, GeneratedTokens: 2, PrefillTokensPerSecond: 5, DecodeTokensPerSecond: 1}, m.Stats)

	require.Len(t, updates, 4)
	require.Equal(t, Began, updates[0].Kind)
	require.Equal(t, "capital of France?", updates[0].Question.Content)
	require.Equal(t, m.ID, updates[0].Answer.ID)
	require.Equal(t, "Par", updates[1].Delta.Text)
	require.Equal(t, "is", updates[2].Delta.Text)
	require.Equal(t, Ended, updates[3].Kind)
	require.Equal(t, m, updates[3].Answer)
	for _, u := range updates {
		require.Equal(t, conv, u.Conversation)
	}

	_, err = s.Ask(t.Context(), conv, "and of Italy?", func(Update) {})
	require.NoError(t, err)
	require.Equal(t, []chat.Message{
		{Role: "system", Content: "be brief"},
		{Role: "user", Content: "capital of France?"},
		{Role: "assistant", Content: "Paris"},
		{Role: "user", Content: "and of Italy?"},
	}, asked[1].Messages)

	kept, err := s.Store().Messages(t.Context(), conv)
	require.NoError(t, err)
	require.Len(t, kept, 4)
	for i := 1; i < len(kept); i++ {
		require.Equal(t, kept[i-1].ID, kept[i].Parent)
	}
	list, err := s.Store().Conversations(t.Context())
	require.NoError(t, err)
	require.Equal(t, "capital of France?", list[0].Title)
}

// An answer that is only a call of a tool is shown and kept as text.
func TestToolCallIsText(t *testing.T) {
	s, conv := newSession(t, "")
	s.Use(askerFunc(func(_ context.Context, _ inference.Request, emit func(inference.Delta)) (inference.Stats, error) {
		emit(inference.Delta{ToolCall: `{"name": `})
		emit(inference.Delta{ToolCall: `"weather"}`})
		return inference.Stats{GeneratedTokens: 2}, nil
	}), "tiny")
	var seen string
	m, err := s.Ask(t.Context(), conv, "rain?", func(u Update) { seen += u.Delta.Text })
	require.NoError(t, err)
	require.Equal(t, `{"name": "weather"}`, m.Content)
	require.Equal(t, m.Content, seen)
}

func TestFailureKeepsTheText(t *testing.T) {
	s, conv := newSession(t, "")
	lost := errors.New("rank 1 was lost")
	s.Use(askerFunc(func(_ context.Context, _ inference.Request, emit func(inference.Delta)) (inference.Stats, error) {
		emit(inference.Delta{Text: "half an ", Reasoning: "hm"})
		return inference.Stats{GeneratedTokens: 2}, lost
	}), "tiny")
	m, err := s.Ask(t.Context(), conv, "q", func(Update) {})
	require.ErrorIs(t, err, lost)
	require.Equal(t, "half an ", m.Content)
	require.Equal(t, "hm", m.Reasoning)
	require.Equal(t, history.StatusFailed, m.Status)
	require.Equal(t, "rank 1 was lost", m.Error)
	require.Equal(t, 2, m.Stats.GeneratedTokens)
	kept, err := s.Store().Message(t.Context(), m.ID)
	require.NoError(t, err)
	require.Equal(t, m, kept)

	// A question that got no text at all is not put to the model again.
	s.Use(askerFunc(func(context.Context, inference.Request, func(inference.Delta)) (inference.Stats, error) {
		return inference.Stats{}, lost
	}), "tiny")
	_, err = s.Ask(t.Context(), conv, "lost question", func(Update) {})
	require.ErrorIs(t, err, lost)
	var asked []inference.Request
	s.Use(says(&asked, "x"), "tiny")
	_, err = s.Ask(t.Context(), conv, "again", func(Update) {})
	require.NoError(t, err)
	require.Equal(t, []chat.Message{
		{Role: "user", Content: "q"},
		{Role: "assistant", Content: "half an "},
		{Role: "user", Content: "again"},
	}, asked[0].Messages)
}

// endless streams until its context ends.
func endless(started chan<- struct{}) askerFunc {
	return func(ctx context.Context, _ inference.Request, emit func(inference.Delta)) (inference.Stats, error) {
		emit(inference.Delta{Text: "so far"})
		close(started)
		<-ctx.Done()
		return inference.Stats{GeneratedTokens: 1}, ctx.Err()
	}
}

func TestStop(t *testing.T) {
	s, conv := newSession(t, "")
	started := make(chan struct{})
	s.Use(endless(started), "tiny")
	ended := make(chan history.Message, 1)
	s.Start(conv, "q", func(u Update) {
		if u.Kind == Ended {
			ended <- u.Answer
		}
	}, func(err error) { t.Error(err) })
	<-started
	require.True(t, s.Running(conv))
	_, err := s.Ask(t.Context(), conv, "q2", func(Update) {})
	require.ErrorIs(t, err, ErrBusy)
	s.Stop(conv)
	m := <-ended
	require.Equal(t, "so far", m.Content)
	require.Equal(t, history.StatusStopped, m.Status)
	require.Empty(t, m.Error)
	s.Stop(conv) // nothing more to stop
	s.Close()
	require.False(t, s.Running(conv))
}

func TestStopIsNoErrorOfAsk(t *testing.T) {
	s, conv := newSession(t, "")
	started := make(chan struct{})
	s.Use(endless(started), "tiny")
	go func() {
		<-started
		s.Stop(conv)
	}()
	m, err := s.Ask(t.Context(), conv, "q", func(Update) {})
	require.NoError(t, err)
	require.Equal(t, history.StatusStopped, m.Status)
}

func TestCancelledCallerKeepsTheText(t *testing.T) {
	s, conv := newSession(t, "")
	started := make(chan struct{})
	s.Use(endless(started), "tiny")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-started
		cancel()
	}()
	m, err := s.Ask(ctx, conv, "q", func(Update) {})
	require.ErrorIs(t, err, context.Canceled)
	kept, err := s.Store().Message(t.Context(), m.ID)
	require.NoError(t, err)
	require.Equal(t, "so far", kept.Content)
	require.Equal(t, history.StatusStopped, kept.Status)
}

func TestCloseStopsAndWaits(t *testing.T) {
	s, conv := newSession(t, "")
	started := make(chan struct{})
	s.Use(endless(started), "tiny")
	s.Start(conv, "q", func(Update) {}, func(err error) { t.Error(err) })
	<-started
	s.Close()
	kept, err := s.Store().Messages(t.Context(), conv)
	require.NoError(t, err)
	require.Equal(t, history.StatusStopped, kept[1].Status)
	require.Equal(t, "so far", kept[1].Content)
	_, err = s.Ask(t.Context(), conv, "q", func(Update) {})
	require.ErrorIs(t, err, ErrClosed)
}

func TestNothingIsAskedWithoutAModel(t *testing.T) {
	s, conv := newSession(t, "")
	_, err := s.Ask(t.Context(), conv, "q", func(Update) { t.Error("began") })
	require.ErrorIs(t, err, ErrNoModel)
	failed := make(chan error, 1)
	s.Start(conv, "q", func(Update) { t.Error("began") }, func(err error) { failed <- err })
	require.ErrorIs(t, <-failed, ErrNoModel)

	var asked []inference.Request
	s.Use(says(&asked, "x"), "tiny")
	s.Start(conv+1, "q", func(Update) { t.Error("began") }, func(err error) { failed <- err })
	require.ErrorIs(t, <-failed, history.ErrNotFound)
	require.Empty(t, asked)
	kept, err := s.Store().Messages(t.Context(), conv)
	require.NoError(t, err)
	require.Empty(t, kept)
}

func TestConversationDeletedMeanwhile(t *testing.T) {
	s, conv := newSession(t, "")
	s.Use(askerFunc(func(ctx context.Context, _ inference.Request, emit func(inference.Delta)) (inference.Stats, error) {
		emit(inference.Delta{Text: "x"})
		return inference.Stats{}, s.Store().DeleteConversation(ctx, conv)
	}), "tiny")
	m, err := s.Ask(t.Context(), conv, "q", func(Update) {})
	require.ErrorIs(t, err, history.ErrNotFound)
	require.Equal(t, history.StatusFailed, m.Status)
}

func TestTitle(t *testing.T) {
	for in, want := range map[string]string{
		"short":       "short",
		" two\nlines": "two lines",
		"the quick brown fox jumps over the lazy dog and then over the fence": "the quick brown fox jumps over the lazy dog and then over…",
		"ありがとうございますありがとうございますありがとうございますありがとうございますありがとうございますありがとうございますあり": "ありがとうございますありがとうございますありがとうございますありがとうございますありがとうございますありがとうございます…",
	} {
		require.Equal(t, want, title(in))
	}
}

func TestPromptFollowsParents(t *testing.T) {
	user, assistant := history.RoleUser, history.RoleAssistant
	got := prompt("", []history.Message{
		{ID: 1, Role: user, Content: "a"},
		{ID: 2, Parent: 1, Role: assistant, Content: "first answer"},
		{ID: 3, Parent: 1, Role: assistant, Content: "second answer"},
		{ID: 4, Parent: 3, Role: user, Content: "b"},
	})
	require.Equal(t, []chat.Message{{Role: "user", Content: "a"}, {Role: "assistant", Content: "second answer"}, {Role: "user", Content: "b"}}, got)
	// A circle, which no program of ours writes, ends.
	require.Len(t, prompt("", []history.Message{{ID: 1, Parent: 2, Role: user, Content: "a"}, {ID: 2, Parent: 1, Role: assistant, Content: "b"}}), 2)
}
