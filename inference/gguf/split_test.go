package gguf

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func splitKV(no, count int) []KV {
	return []KV{{"split.no", uint16(no)}, {"split.count", uint16(count)}, {"split.tensors.count", int32(4)}}
}

func writeSplit(t *testing.T) (dir, first string) {
	dir = t.TempDir()
	all := sampleTensors()
	first = writeFile(t, dir, "m-00001-of-00003.gguf", encode(t, splitKV(0, 3), all[:1]))
	writeFile(t, dir, "m-00002-of-00003.gguf", encode(t, splitKV(1, 3), all[1:2]))
	writeFile(t, dir, "m-00003-of-00003.gguf", encode(t, splitKV(2, 3), all[2:]))
	return dir, first
}

func TestSplitModelLooksLikeOne(t *testing.T) {
	_, first := writeSplit(t)
	f, err := Open(first)
	require.NoError(t, err)
	defer f.Close()
	require.Len(t, f.Parts(), 3)
	require.Len(t, f.Tensors(), 4)
	var total int64
	for i, p := range f.Parts() {
		info, err := os.Stat(p.Path)
		require.NoError(t, err)
		assert.Equal(t, info.Size(), p.Size)
		assert.Equal(t, SplitPaths(first)[i], p.Path)
		total += p.Size
	}
	assert.Equal(t, total, f.Size())
	for i, want := range sampleTensors() {
		tensor, ok := f.Tensor(want.Name)
		require.True(t, ok)
		assert.Equal(t, min(i, 2), tensor.Part)
		data := make([]byte, tensor.Bytes())
		require.NoError(t, f.ReadTensorAt(tensor, data, 0))
		assert.Equal(t, want.Data, data)
	}
	_, err = f.Fingerprint()
	require.NoError(t, err)
}

func TestSplitModelFaults(t *testing.T) {
	dir, first := writeSplit(t)
	second, third := dir+"/m-00002-of-00003.gguf", dir+"/m-00003-of-00003.gguf"

	_, err := Open(second)
	assert.ErrorContains(t, err, "part 2 of a split model, open its first part m-00001-of-00003.gguf")

	renamed := writeFile(t, dir, "renamed.gguf", encode(t, splitKV(0, 3), nil))
	_, err = Open(renamed)
	assert.ErrorContains(t, err, "not named like one")

	writeFile(t, dir, "m-00003-of-00003.gguf", encode(t, splitKV(1, 3), sampleTensors()[2:]))
	_, err = Open(first)
	assert.ErrorContains(t, err, third+": says it is part 2 of 3, not 3 of 3")

	writeFile(t, dir, "m-00003-of-00003.gguf", encode(t, splitKV(2, 3), sampleTensors()[:1]))
	_, err = Open(first)
	assert.ErrorContains(t, err, `tensor "a" is in an earlier part too`)

	writeFile(t, dir, "m-00003-of-00003.gguf", encode(t, splitKV(2, 3), sampleTensors()[3:]))
	_, err = Open(first)
	assert.ErrorContains(t, err, "says 4 tensors in all parts, there are 3")

	require.NoError(t, os.Remove(third))
	_, err = Open(first)
	assert.ErrorContains(t, err, third+": no such file or directory (part 3 of 3)")
}

func TestSplitPaths(t *testing.T) {
	assert.Equal(t, []string{"x.gguf"}, SplitPaths("x.gguf"))
	assert.Equal(t, []string{"x-00001-of-00000.gguf"}, SplitPaths("x-00001-of-00000.gguf"))
	assert.Equal(t, []string{"x-00001-of-99999.gguf"}, SplitPaths("x-00001-of-99999.gguf"), "above MaxParts")
	assert.Equal(t, []string{"d/x-00001-of-00002.gguf", "d/x-00002-of-00002.gguf"}, SplitPaths("d/x-00002-of-00002.gguf"))
}
