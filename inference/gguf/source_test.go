package gguf

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func sourceOf(t *testing.T, paths ...string) Source {
	t.Helper()
	s := Source{Name: "a peer"}
	for _, p := range paths {
		data, err := os.ReadFile(p)
		require.NoError(t, err)
		s.Parts = append(s.Parts, SourcePart{bytes.NewReader(data), int64(len(data))})
	}
	return s
}

func TestSourceIsTheFile(t *testing.T) {
	_, first := writeSplit(t)
	whole := writeFile(t, t.TempDir(), "m.gguf", encode(t, nil, sampleTensors()))
	for _, path := range []string{first, whole} {
		f, err := Open(path)
		require.NoError(t, err)
		defer f.Close()
		s, err := OpenSource(sourceOf(t, SplitPaths(path)...))
		require.NoError(t, err)
		require.Equal(t, f.Tensors(), s.Tensors())
		require.Equal(t, f.Size(), s.Size())
		want, err := f.Fingerprint()
		require.NoError(t, err)
		got, err := s.Fingerprint()
		require.NoError(t, err)
		require.Equal(t, want, got)
		for _, x := range f.Tensors() {
			a, b := make([]byte, x.Bytes()), make([]byte, x.Bytes())
			require.NoError(t, f.ReadTensorAt(x, a, 0))
			require.NoError(t, s.ReadTensorAt(x, b, 0))
			require.Equal(t, a, b)
			require.NotNil(t, f.Local(x.Part))
			require.Nil(t, s.Local(x.Part))
			require.NoError(t, f.CheckLocal(x.Part))
			require.NoError(t, s.CheckLocal(x.Part))
		}
		require.NoError(t, f.CheckSource())
		require.NoError(t, s.CheckSource())
		require.Equal(t, int64(DefaultGap), s.Gap())
		require.NoError(t, s.Close())
	}
}

func TestSourceMustHaveAllParts(t *testing.T) {
	_, first := writeSplit(t)
	paths := SplitPaths(first)
	for _, some := range [][]string{{}, paths[:1], paths[:2], paths[1:], {paths[0], paths[2], paths[1]}, append(paths, paths[2])} {
		_, err := OpenSource(sourceOf(t, some...))
		require.ErrorContains(t, err, "a peer")
	}
}

func TestShortSource(t *testing.T) {
	data := encode(t, nil, sampleTensors())
	for n := range len(data) {
		_, err := OpenSource(Source{Name: "a peer", Parts: []SourcePart{{bytes.NewReader(data[:n]), int64(len(data))}}})
		require.ErrorContains(t, err, "a peer", "%d bytes", n)
	}
}

func TestChangedSourceNamesTheTensor(t *testing.T) {
	data := encode(t, nil, sampleTensors())
	f, err := OpenSource(Source{Name: "a peer", Parts: []SourcePart{{bytes.NewReader(data), int64(len(data))}}})
	require.NoError(t, err)
	x := f.Tensors()[len(f.Tensors())-1]
	data[x.Offset] ^= 1
	require.ErrorContains(t, f.CheckSource(), "a peer: tensor \""+x.Name)
}

func TestChangedFile(t *testing.T) {
	path := writeFile(t, t.TempDir(), "m.gguf", encode(t, nil, sampleTensors()))
	f, err := Open(path)
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, f.CheckLocal(0))
	require.NoError(t, os.Chtimes(path, time.Time{}, time.Unix(1, 0)))
	require.ErrorContains(t, f.CheckLocal(0), path+": changed")
}
