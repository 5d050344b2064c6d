package history

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// begin opens a store with one conversation, one question and an open answer.
func begin(t *testing.T, path string) (*Store, *Answer) {
	t.Helper()
	s := open(t, path)
	c, err := s.CreateConversation(t.Context(), "t")
	require.NoError(t, err)
	q, err := s.AddMessage(t.Context(), Message{Conversation: c.ID, Role: RoleUser, Content: "q"})
	require.NoError(t, err)
	a, err := s.BeginAnswer(t.Context(), c.ID, q.ID, "model")
	require.NoError(t, err)
	return s, a
}

// waitFor reads the row until it is as wanted.
func waitFor(t *testing.T, s *Store, id int64, ok func(Message) bool) {
	t.Helper()
	require.Eventually(t, func() bool {
		m, err := s.Message(context.Background(), id)
		return err == nil && ok(m)
	}, 10*time.Second, 5*time.Millisecond)
}

func TestAnswerIsWrittenWhileItStreams(t *testing.T) {
	s, a := begin(t, filepath.Join(t.TempDir(), "h.db"))
	id := a.Message().ID
	a.Append("Par", "think")
	a.Append("is", "ing")
	a.Append("", "")
	waitFor(t, s, id, func(m Message) bool {
		return m.Content == "Paris" && m.Reasoning == "thinking" && m.Status == StatusStreaming
	})
	a.Append(".", "")
	stats := Stats{PromptTokens: 1, GeneratedTokens: 2, PrefillTokensPerSecond: 3, DecodeTokensPerSecond: 4}
	require.NoError(t, a.Finish(t.Context(), Outcome{Status: StatusDone, Stats: stats}))
	m, err := s.Message(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, "Paris.", m.Content)
	require.Equal(t, StatusDone, m.Status)
	require.Equal(t, stats, m.Stats)
	require.Equal(t, "model", m.Model)

	a.Append("late", "")
	require.ErrorIs(t, a.Finish(t.Context(), Outcome{Status: StatusDone}), ErrClosed)
	m, err = s.Message(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, "Paris.", m.Content)
}

func TestAnswerKeepsTextOnError(t *testing.T) {
	s, a := begin(t, filepath.Join(t.TempDir(), "h.db"))
	a.Append("half", "")
	require.Error(t, a.Finish(t.Context(), Outcome{}))
	require.Error(t, a.Finish(t.Context(), Outcome{Status: StatusStreaming}))
	require.NoError(t, a.Finish(t.Context(), Outcome{Status: StatusFailed, Error: "a peer was lost"}))
	m, err := s.Message(t.Context(), a.Message().ID)
	require.NoError(t, err)
	require.Equal(t, "half", m.Content)
	require.Equal(t, StatusFailed, m.Status)
	require.Equal(t, "a peer was lost", m.Error)
}

// A long answer in small pieces arrives whole and in order, whatever the
// flushes cut.
func TestAnswerWhole(t *testing.T) {
	s, a := begin(t, filepath.Join(t.TempDir(), "h.db"))
	var want strings.Builder
	for i := range 20000 {
		piece := strings.Repeat(string(rune('a'+i%26)), i%7)
		want.WriteString(piece)
		a.Append(piece, "")
	}
	require.NoError(t, a.Finish(t.Context(), Outcome{Status: StatusStopped}))
	m, err := s.Message(t.Context(), a.Message().ID)
	require.NoError(t, err)
	require.Equal(t, want.String(), m.Content)
}

// While another connection holds the write lock, Append does not wait for it,
// and nothing is lost.
func TestAppendDoesNotWaitForTheDisk(t *testing.T) {
	s, a := begin(t, filepath.Join(t.TempDir(), "h.db"))
	tx, err := s.db.Begin()
	require.NoError(t, err)
	_, err = tx.Exec(`UPDATE conversations SET title = 'locked'`)
	require.NoError(t, err)
	start := time.Now()
	for range 1000 {
		a.Append(strings.Repeat("x", 100), "")
	}
	require.Less(t, time.Since(start), time.Second)
	require.NoError(t, tx.Commit())
	require.NoError(t, a.Finish(t.Context(), Outcome{Status: StatusDone}))
	m, err := s.Message(t.Context(), a.Message().ID)
	require.NoError(t, err)
	require.Len(t, m.Content, 100_000)
}

func TestCloseKeepsOpenAnswers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "h.db")
	s, a := begin(t, path)
	a.Append("so far", "")
	require.NoError(t, s.Close())
	require.ErrorIs(t, a.Finish(t.Context(), Outcome{Status: StatusDone}), ErrClosed)
	m, err := open(t, path).Message(t.Context(), a.Message().ID)
	require.NoError(t, err)
	require.Equal(t, "so far", m.Content)
	require.Equal(t, StatusInterrupted, m.Status)
}

func TestAnswerInDeletedConversation(t *testing.T) {
	s, a := begin(t, filepath.Join(t.TempDir(), "h.db"))
	require.NoError(t, s.DeleteConversation(t.Context(), a.Message().Conversation))
	a.Append("x", "")
	require.ErrorIs(t, a.Finish(t.Context(), Outcome{Status: StatusDone}), ErrNotFound)
	_, err := s.BeginAnswer(t.Context(), a.Message().Conversation, 0, "")
	require.ErrorIs(t, err, ErrNotFound)
}
