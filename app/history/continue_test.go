package history

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// What follows is added to the half answer, in the same row.
func TestContinueAnswer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "h.db")
	s, a := begin(t, path)
	a.Append("half an ", "")
	require.NoError(t, s.Close()) // with the answer open
	s = open(t, path)
	id := a.Message().ID
	b, err := s.ContinueAnswer(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, "half an ", b.Message().Content)
	require.Equal(t, StatusStreaming, b.Message().Status)
	b.Append("answer", "")
	require.NoError(t, b.Finish(t.Context(), Outcome{Status: StatusDone}))
	m, err := s.Message(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, "half an answer", m.Content)
	require.Equal(t, StatusDone, m.Status)

	_, err = s.ContinueAnswer(t.Context(), id)
	require.ErrorIs(t, err, ErrComplete)
	_, err = s.ContinueAnswer(t.Context(), m.Parent) // the question
	require.ErrorIs(t, err, ErrComplete)
}
