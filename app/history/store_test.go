package history

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func open(t *testing.T, path string) *Store {
	t.Helper()
	s, err := Open(t.Context(), path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestConversationsAndMessages(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a folder", "history?#%.db")
	s := open(t, path)
	ctx := t.Context()

	first, err := s.CreateConversation(ctx, "first")
	require.NoError(t, err)
	second, err := s.CreateConversation(ctx, "")
	require.NoError(t, err)
	q, err := s.AddMessage(ctx, Message{Conversation: second.ID, Role: RoleUser, Content: "नमस्ते\x00'"})
	require.NoError(t, err)
	a, err := s.AddMessage(ctx, Message{
		Conversation: second.ID, Parent: q.ID, Role: RoleAssistant, Content: "hello", Reasoning: "hm",
		Status: StatusFailed, Error: "why", Model: "m", Stats: Stats{3, 4, 5.5, 6.5, 2, "end"},
	})
	require.NoError(t, err)

	got, err := s.Messages(ctx, second.ID)
	require.NoError(t, err)
	require.Equal(t, []Message{q, a}, got)
	require.Equal(t, StatusDone, q.Status)
	one, err := s.Message(ctx, a.ID)
	require.NoError(t, err)
	require.Equal(t, a, one)

	// A message lifts its conversation to the top.
	_, err = s.db.Exec(`UPDATE conversations SET updated_at = 1`)
	require.NoError(t, err)
	_, err = s.AddMessage(ctx, Message{Conversation: first.ID, Role: RoleUser, Content: "x"})
	require.NoError(t, err)
	require.NoError(t, s.SetTitle(ctx, second.ID, "second"))
	list, err := s.Conversations(ctx)
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, "first", list[0].Title)
	require.Equal(t, "second", list[1].Title)

	// Deleting takes the messages along.
	require.NoError(t, s.DeleteConversation(ctx, second.ID))
	got, err = s.Messages(ctx, second.ID)
	require.NoError(t, err)
	require.Empty(t, got)

	for _, err := range []error{
		s.DeleteConversation(ctx, second.ID),
		s.SetTitle(ctx, second.ID, "x"),
		second2(s.AddMessage(ctx, Message{Conversation: second.ID, Role: RoleUser})),
		second2(s.AddMessage(ctx, Message{Conversation: first.ID, Parent: 999, Role: RoleUser})),
		second2(s.Message(ctx, a.ID)),
	} {
		require.ErrorIs(t, err, ErrNotFound)
	}
	_, err = s.AddMessage(ctx, Message{Conversation: first.ID, Role: "narrator"})
	require.Error(t, err)

	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

func second2[T any](_ T, err error) error { return err }

func TestReopenKeepsEverything(t *testing.T) {
	path := filepath.Join(t.TempDir(), "h.db")
	s := open(t, path)
	c, err := s.CreateConversation(t.Context(), "kept")
	require.NoError(t, err)
	require.NoError(t, s.Close())
	require.NoError(t, s.Close()) // more than once

	s = open(t, path)
	list, err := s.Conversations(t.Context())
	require.NoError(t, err)
	require.Equal(t, []Conversation{c}, list)
	var mode string
	require.NoError(t, s.db.QueryRow(`PRAGMA journal_mode`).Scan(&mode))
	require.Equal(t, "wal", mode)
	var keys int
	require.NoError(t, s.db.QueryRow(`PRAGMA foreign_keys`).Scan(&keys))
	require.Equal(t, 1, keys)
}

// Files that are not ours are refused in words and not changed by a byte.
func TestOpenRefuses(t *testing.T) {
	valid := filepath.Join(t.TempDir(), "valid.db")
	s := open(t, valid)
	for range 50 { // several pages
		_, err := s.CreateConversation(t.Context(), string(make([]byte, 500)))
		require.NoError(t, err)
	}
	require.NoError(t, s.Close())
	good, err := os.ReadFile(valid)
	require.NoError(t, err)

	made := func(statements ...string) []byte {
		path := filepath.Join(t.TempDir(), "made.db")
		db, err := sql.Open("sqlite3", path)
		require.NoError(t, err)
		for _, q := range statements {
			_, err := db.Exec(q)
			require.NoError(t, err)
		}
		require.NoError(t, db.Close())
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		return data
	}

	for _, c := range []struct {
		name string
		data []byte
		want error
	}{
		{"text", []byte("this is a letter to my aunt, and nothing else at all, not by any means"), ErrDamaged},
		{"zeros", make([]byte, 8192), ErrDamaged},
		{"truncated", good[:len(good)-5000], ErrDamaged},
		{"torn header", append([]byte("SQLite format 3\x00"), make([]byte, 84)...), ErrDamaged},
		{"overwritten first page", append(append(good[:100:100], make([]byte, 3996)...), good[4096:]...), ErrDamaged},
		{"of another program", made(`CREATE TABLE bookmarks (url TEXT)`), ErrDamaged},
		{"newer", made(`CREATE TABLE conversations (id)`, `PRAGMA user_version = 99`), ErrNewer},
		{"negative version", made(`CREATE TABLE conversations (id)`, `PRAGMA user_version = -1`), ErrDamaged},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "h.db")
			require.NoError(t, os.WriteFile(path, c.data, 0o600))
			_, err := Open(t.Context(), path)
			require.ErrorIs(t, err, c.want)
			after, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, c.data, after)
		})
	}
}

func TestOpenInAFolderThatCannotBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := Open(t.Context(), filepath.Join(file, "h.db"))
	require.ErrorContains(t, err, "opening the history")
}
