package gguf

import (
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestOpenReadsWhatWriteWrote(t *testing.T) {
	b := encode(t, sampleKV(), sampleTensors())
	path := writeFile(t, t.TempDir(), "m.gguf", b)
	f, err := Open(path)
	require.NoError(t, err)
	defer f.Close()

	assert.Equal(t, path, f.Path())
	assert.Equal(t, 3, f.Version())
	assert.EqualValues(t, len(b), f.Size())
	assert.Zero(t, f.HeaderSize()%DefaultAlignment)
	var keys []string
	for _, kv := range sampleKV() {
		keys = append(keys, kv.Key)
		assert.Equal(t, kv.Value, f.meta[kv.Key], kv.Key)
	}
	assert.Equal(t, keys, f.Keys())

	require.Len(t, f.Tensors(), len(sampleTensors()))
	for i, want := range sampleTensors() {
		got, ok := f.Tensor(want.Name)
		require.True(t, ok)
		assert.Equal(t, got, f.Tensors()[i])
		assert.Equal(t, want.Shape, got.Shape)
		assert.Equal(t, want.Type, got.Type)
		assert.Zero(t, got.Offset%DefaultAlignment)
		data := make([]byte, got.Bytes())
		require.NoError(t, f.ReadTensorAt(got, data, 0))
		assert.Equal(t, want.Data, data)
		_, err := f.ReadAt(data, got.Offset)
		require.NoError(t, err)
		assert.Equal(t, want.Data, data)
	}
	_, ok := f.Tensor("absent")
	assert.False(t, ok)
}

func TestGettersConvertOnlyWhatFits(t *testing.T) {
	f, err := parseBytes(encode(t, sampleKV(), nil))
	require.NoError(t, err)
	for key, want := range map[string]int64{"u8": 200, "i8": -3, "u16": 60000, "i16": -300, "u32": 4_000_000_000,
		"i32": -70000, "i64": -1 << 40} {
		got, ok := f.Int(key)
		assert.True(t, ok, key)
		assert.Equal(t, want, got, key)
		u, ok := f.Uint(key)
		assert.Equal(t, want >= 0, ok, key)
		if ok {
			assert.EqualValues(t, want, u)
		}
		x, ok := f.Float(key)
		assert.True(t, ok)
		assert.EqualValues(t, want, x)
	}
	_, ok := f.Int("u64")
	assert.False(t, ok, "above int64")
	u, ok := f.Uint("u64")
	assert.True(t, ok)
	assert.EqualValues(t, uint64(1<<63), u)
	for _, key := range []string{"absent", "yes", "general.architecture", "strings", "f32"} {
		_, ok := f.Int(key)
		assert.False(t, ok, key)
		_, ok = f.Uint(key)
		assert.False(t, ok, key)
	}
	x, ok := f.Float("f64")
	assert.True(t, ok)
	assert.Equal(t, 0.25, x)
	_, ok = f.Float("yes")
	assert.False(t, ok)
	b, ok := f.Bool("yes")
	assert.True(t, b && ok)
	b, ok = f.Bool("no")
	assert.True(t, !b && ok)
	_, ok = f.Bool("u8")
	assert.False(t, ok)
	s, ok := f.String("general.architecture")
	assert.True(t, ok)
	assert.Equal(t, "llama", s)

	for key, want := range map[string][]int32{"au8": {1, 255}, "ai8": {-1, 1}, "au16": {65535}, "ai16": {-2},
		"ai32": {-7, 7}, "au64": {9}} {
		got, ok := f.Ints(key)
		assert.True(t, ok, key)
		assert.Equal(t, want, got, key)
	}
	for _, key := range []string{"au32", "ai64", "af32", "absent"} {
		_, ok := f.Ints(key)
		assert.False(t, ok, key)
	}
	fl, ok := f.Floats("af64")
	assert.True(t, ok)
	assert.Equal(t, []float32{2.5}, fl)
	_, ok = f.Floats("ai32")
	assert.False(t, ok)
	bs, ok := f.Bools("abool")
	assert.True(t, ok)
	assert.Equal(t, []bool{true, false}, bs)
}

func TestAlignmentOfTheFileIsUsed(t *testing.T) {
	f, err := parseBytes(encode(t, []KV{{"general.alignment", uint32(4096)}}, sampleTensors()))
	require.NoError(t, err)
	assert.Zero(t, f.HeaderSize()%4096)
	for _, tensor := range f.Tensors() {
		assert.Zero(t, tensor.Offset%4096)
	}
}

func TestReadTensorAtStaysInsideTheTensor(t *testing.T) {
	f, err := parseBytes(encode(t, nil, sampleTensors()))
	require.NoError(t, err)
	b, _ := f.Tensor("b")
	p := make([]byte, b.RowBytes())
	require.NoError(t, f.ReadTensorAt(b, p, b.RowBytes()))
	assert.Equal(t, seq(36)[18:], p)
	for _, off := range []int64{-1, b.Bytes() - b.RowBytes() + 1, b.Bytes() + 1} {
		assert.Error(t, f.ReadTensorAt(b, p, off))
	}
	b.Part = 1
	assert.Error(t, f.ReadTensorAt(b, p, 0))
}

func TestTensorSizes(t *testing.T) {
	tensor := Tensor{Shape: []int64{512, 3, 2}, Type: Q4_K}
	assert.EqualValues(t, 3072, tensor.Elements())
	assert.EqualValues(t, 6, tensor.Rows())
	assert.EqualValues(t, 288, tensor.RowBytes())
	assert.EqualValues(t, 1728, tensor.Bytes())
	assert.Zero(t, Tensor{}.Bytes())
}

func TestFingerprint(t *testing.T) {
	big := []TensorData{{"w", []int64{1 << 20}, F32, seq(4 << 20)}}
	kv := []KV{{"general.name", "one"}}
	base := encode(t, kv, big)
	print := func(b []byte) string {
		f, err := parseBytes(b)
		require.NoError(t, err)
		s, err := f.Fingerprint()
		require.NoError(t, err)
		return s
	}
	want := print(base)
	assert.Len(t, want, 64)
	assert.Equal(t, want, print(append([]byte(nil), base...)))

	other := append([]byte(nil), base...)
	other[len(other)-1]++ // the last block is one of the 64
	assert.NotEqual(t, want, print(other))
	assert.NotEqual(t, want, print(encode(t, []KV{{"general.name", "two"}}, big)))
	assert.NotEqual(t, want, print(append(append([]byte(nil), base...), make([]byte, 32)...)), "another size")

	f, err := parseBytes(base)
	require.NoError(t, err)
	counter := &countingReader{r: f.parts[0].r}
	f.parts[0].r = counter
	_, err = f.Fingerprint()
	require.NoError(t, err)
	assert.Less(t, counter.n, int64(1<<20), "reads a small part of the file")
}

type countingReader struct {
	r io.ReaderAt
	n int64
}

func (c *countingReader) ReadAt(p []byte, off int64) (int, error) {
	n, err := c.r.ReadAt(p, off)
	c.n += int64(n)
	return n, err
}
