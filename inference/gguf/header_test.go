package gguf

import (
	"bytes"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func sampleList() (list []Tensor) {
	for _, t := range sampleTensors() {
		list = append(list, Tensor{Name: t.Name, Shape: t.Shape, Type: t.Type})
	}
	return list
}

// The beginning of a file says all of the file but the data.
func TestHeaderAlone(t *testing.T) {
	whole := encode(t, sampleKV(), sampleTensors())
	f, err := parseBytes(whole)
	require.NoError(t, err)
	var header bytes.Buffer
	require.NoError(t, WriteHeader(&header, sampleKV(), sampleList()))
	require.Equal(t, whole[:f.HeaderSize()], header.Bytes())

	_, err = Open(writeFile(t, t.TempDir(), "m.gguf", header.Bytes()))
	require.ErrorContains(t, err, "truncated")
	alone, err := OpenHeader(writeFile(t, t.TempDir(), "m.gguf", header.Bytes()))
	require.NoError(t, err)
	defer alone.Close()
	require.Equal(t, f.Tensors(), alone.Tensors())
	require.Equal(t, f.Keys(), alone.Keys())
	require.InDelta(t, f.Size(), alone.Size(), DefaultAlignment, "all but padding at the end")
	last := alone.Tensors()[len(sampleTensors())-1]
	require.Error(t, alone.ReadTensorAt(last, make([]byte, last.Bytes()), 0))

	// A cut inside the header stays an error.
	for n := range header.Len() - DefaultAlignment {
		_, err := ParseHeader(bytes.NewReader(header.Bytes()), int64(n))
		require.Error(t, err)
	}
}

func TestHeaderOfPartsAlone(t *testing.T) {
	dir := t.TempDir()
	for i := range 3 {
		var b bytes.Buffer
		require.NoError(t, WriteHeader(&b, splitKV(i, 3), sampleList()[i:i+1+i/2]))
		writeFile(t, dir, []string{"m-00001-of-00003.gguf", "m-00002-of-00003.gguf", "m-00003-of-00003.gguf"}[i], b.Bytes())
	}
	f, err := OpenHeader(dir + "/m-00001-of-00003.gguf")
	require.NoError(t, err)
	defer f.Close()
	require.Len(t, f.Tensors(), 4)
}

// Sizes that only a header can claim are refused before sums of them overflow.
func TestHeaderOfAbsurdSize(t *testing.T) {
	for _, shape := range [][]int64{{1 << 48}, {math.MaxInt64 / 8}, {1 << 30, 1 << 29}} {
		var b bytes.Buffer
		require.NoError(t, WriteHeader(&b, nil, []Tensor{{Name: "a", Shape: shape, Type: F64}}))
		_, err := ParseHeader(bytes.NewReader(b.Bytes()), int64(b.Len()))
		require.ErrorContains(t, err, "as large")
	}
}

// FuzzParseHeader feeds arbitrary bytes; sizes of what parses never overflow.
func FuzzParseHeader(f *testing.F) {
	f.Add(encode(f, sampleKV(), sampleTensors()))
	var b bytes.Buffer
	require.NoError(f, WriteHeader(&b, sampleKV(), sampleList()))
	f.Add(b.Bytes())
	for _, c := range malformed {
		f.Add(c.b.Bytes())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := ParseHeader(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		for _, tensor := range file.Tensors() {
			end := tensor.Offset + tensor.Bytes()
			require.LessOrEqual(t, end, file.Size())
			require.Positive(t, tensor.Bytes())
		}
	})
}
