package verbs

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestMarker(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	now := time.Now()
	require.Empty(t, resting(dir, now))
	m, err := mark(dir, []string{"rdma_en2", "rdma_en3"})
	require.NoError(t, err)
	require.Empty(t, resting(dir, now), "its process lives")

	// Closing the file takes the lock away, as the death of the process does.
	name := m.file.Name()
	require.NoError(t, m.file.Close())
	died := time.Now().Add(-time.Minute).Truncate(time.Second)
	require.NoError(t, os.Chtimes(name, died, died))
	rest := resting(dir, now)
	require.Len(t, rest, 2)
	require.WithinDuration(t, died.Add(restFor), rest["rdma_en3"], 0)
	require.FileExists(t, name)
	require.Empty(t, resting(dir, died.Add(restFor)))
	require.NoFileExists(t, name)

	// An orderly end leaves nothing.
	m, err = mark(dir, []string{"rdma_en2"})
	require.NoError(t, err)
	m.touch()
	m.remove()
	require.Empty(t, resting(dir, now))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)

	// What makes no sense rests nothing and does not stay for ever.
	broken := filepath.Join(dir, "rdma-in-use-1.json")
	require.NoError(t, os.WriteFile(broken, []byte(`{"devices": ["rdma`), 0o600))
	require.Empty(t, resting(dir, now))
	require.Empty(t, resting(dir, now.Add(time.Hour)))
	require.NoFileExists(t, broken)

	m, err = mark("", []string{"rdma_en2"})
	require.NoError(t, err)
	require.Nil(t, m)
	m.touch()
	m.remove()
}
