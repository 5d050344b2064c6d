package models

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"daisy/inference/gguf"
	"daisy/inference/modeltest"
)

func write(t *testing.T, path, name string, seed uint64) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	modeltest.Write(t, path, modeltest.Options{Seed: seed, KV: []gguf.KV{{Key: "general.name", Value: name}}})
}

func TestListFindsSoundModelsAndNamesTheRest(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "b.gguf"), "B", 1)
	write(t, filepath.Join(dir, "deep", "er", "a.GGUF"), "A", 2)
	write(t, filepath.Join(dir, "a", "b", "c", "d", "e", "too-deep.gguf"), "deep", 3)
	write(t, filepath.Join(dir, ".hidden", "c.gguf"), "C", 4)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("x"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "m-00002-of-00003.gguf"), []byte("x"), 0o600))
	bad := filepath.Join(dir, "bad.gguf")
	require.NoError(t, os.WriteFile(bad, []byte("no model"), 0o600))
	require.NoError(t, os.Symlink(filepath.Join(dir, "gone"), filepath.Join(dir, "dangling.gguf")))

	l := New(dir, filepath.Join(dir, "not there yet"))
	list, err := l.List()
	require.Len(t, list, 2)
	assert.Equal(t, "A", list[0].Name)
	assert.Equal(t, "B", list[1].Name)
	assert.Equal(t, "llama", list[0].Architecture)
	assert.NotEqual(t, list[0].Fingerprint, list[1].Fingerprint)
	info, serr := os.Stat(list[1].Path)
	require.NoError(t, serr)
	assert.Equal(t, info.Size(), list[1].Bytes)

	var file *FileError
	require.ErrorAs(t, err, &file)
	assert.ErrorContains(t, err, bad)
	assert.ErrorIs(t, err, fs.ErrNotExist, "the dangling link")

	m, err := l.Find(list[0].Fingerprint)
	require.NoError(t, err)
	assert.Equal(t, list[0], m)
	_, err = l.Find("other")
	require.ErrorIs(t, err, ErrNotFound)
}

func TestListNoticesChanges(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "m.gguf")
	write(t, path, "first", 1)
	l := New(dir)
	before, err := l.List()
	require.NoError(t, err)
	write(t, path, "second", 1)
	require.NoError(t, os.Chtimes(path, time.Time{}, time.Now().Add(time.Hour)))
	after, err := l.List()
	require.NoError(t, err)
	assert.Equal(t, "first", before[0].Name)
	assert.Equal(t, "second", after[0].Name)
	require.NoError(t, os.Remove(path))
	after, err = l.List()
	require.NoError(t, err)
	assert.Empty(t, after)
}

func TestAddTakesSoundFilesOnly(t *testing.T) {
	dir := t.TempDir()
	l := New()
	bad := filepath.Join(dir, "bad.gguf")
	require.NoError(t, os.WriteFile(bad, []byte("no"), 0o600))
	_, err := l.Add(bad)
	require.ErrorContains(t, err, bad)
	_, err = l.Add(filepath.Join(dir, "gone.gguf"))
	require.ErrorIs(t, err, fs.ErrNotExist)

	good := filepath.Join(dir, "blob-without-extension")
	write(t, good, "", 1)
	m, err := l.Add(good)
	require.NoError(t, err)
	assert.Equal(t, "blob-without-extension", m.Name)
	_, err = l.Add(good)
	require.NoError(t, err)
	list, err := l.List()
	require.NoError(t, err)
	assert.Equal(t, []Model{m}, list)
}
