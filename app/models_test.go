package main

import (
	"os"
	"path/filepath"
	"testing"

	"daisy/inference/gguf"
	"daisy/inference/modeltest"

	"github.com/stretchr/testify/require"
)

// The command says where the models folder is and what is in it, the unsound too.
func TestModels(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "models")
	empty, err := daisy(t, "models", "--dir", dir).CombinedOutput()
	require.NoError(t, err)
	require.Contains(t, string(empty), folder)
	require.DirExists(t, folder)
	require.Equal(t, modelList{Folder: folder, Models: []modelFile{}}, result[modelList](t, daisy(t, "models", "--dir", dir, "--json")))

	good, bad, cut := filepath.Join(folder, "good.gguf"), filepath.Join(folder, "bad.gguf"), filepath.Join(folder, "cut.gguf")
	modeltest.Write(t, good, modeltest.Options{KV: []gguf.KV{{Key: "general.name", Value: "Good"}}})
	data, err := os.ReadFile(good)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(bad, []byte("no model at all"), 0o600))
	require.NoError(t, os.WriteFile(cut, data[:len(data)/2], 0o600))

	list := result[modelList](t, daisy(t, "models", "--dir", dir, "--json"))
	require.Equal(t, []modelFile{{"Good", "llama", int64(len(data)), good}}, list.Models)
	require.Len(t, list.Bad, 2)
	require.Equal(t, bad, list.Bad[0].Path)
	require.Equal(t, cut, list.Bad[1].Path)
	out, err := daisy(t, "models", "--dir", dir).CombinedOutput()
	require.NoError(t, err)
	require.Contains(t, string(out), folder)
	require.Regexp(t, `"Good" +llama +\S+ MB +`+good, string(out))
	for _, b := range list.Bad {
		require.NotEmpty(t, b.Reason)
		require.NotContains(t, b.Reason, b.Path)
		require.Contains(t, string(out), b.Path+": "+b.Reason)
	}
}
