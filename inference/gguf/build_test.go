package gguf

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// sampleKV has a value of every kind.
func sampleKV() []KV {
	return []KV{
		{"general.architecture", "llama"},
		{"u8", uint8(200)}, {"i8", int8(-3)}, {"u16", uint16(60000)}, {"i16", int16(-300)},
		{"u32", uint32(4_000_000_000)}, {"i32", int32(-70000)}, {"u64", uint64(1 << 63)}, {"i64", int64(-1 << 40)},
		{"f32", float32(0.5)}, {"f64", 0.25}, {"yes", true}, {"no", false},
		{"strings", []string{"a", "", "नमस्ते", "\xff"}},
		{"au8", []uint8{1, 255}}, {"ai8", []int8{-1, 1}}, {"au16", []uint16{65535}}, {"ai16", []int16{-2}},
		{"au32", []uint32{7, 1 << 31}}, {"ai32", []int32{-7, 7}}, {"au64", []uint64{9}}, {"ai64", []int64{-9, 1 << 40}},
		{"af32", []float32{1.5, -2}}, {"af64", []float64{2.5}}, {"abool", []bool{true, false}},
		{"empty", []string{}},
	}
}

// sampleTensors has plain and quantised types and one to four dimensions.
func sampleTensors() []TensorData {
	return []TensorData{
		{"a", []int64{3}, F32, seq(12)},
		{"b", []int64{32, 2}, Q4_0, seq(36)},
		{"c", []int64{256, 1, 2}, Q6_K, seq(420)},
		{"d", []int64{1, 2, 3, 4}, BF16, seq(48)},
	}
}

func seq(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + n)
	}
	return b
}

func encode(t testing.TB, kv []KV, tensors []TensorData) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, Write(&b, kv, tensors))
	return b.Bytes()
}

func parseBytes(b []byte) (*File, error) { return Parse(bytes.NewReader(b), int64(len(b))) }

func writeFile(t testing.TB, dir, name string, b []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(path, b, 0o600))
	return path
}
