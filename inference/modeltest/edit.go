package modeltest

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"daisy/inference/gguf"
)

// Edit writes a copy of the model at path with the metadata in kv added or
// replaced, and without the keys and tensors named in drop; it returns the copy's
// path. A name in drop that the model does not have fails the test.
func Edit(t testing.TB, path string, kv []gguf.KV, drop ...string) string {
	t.Helper()
	all, tensors := contents(t, path)
	for _, name := range drop {
		n := len(all) + len(tensors)
		all = slices.DeleteFunc(all, func(x gguf.KV) bool { return x.Key == name })
		tensors = slices.DeleteFunc(tensors, func(x gguf.TensorData) bool { return x.Name == name })
		if len(all)+len(tensors) == n {
			t.Fatalf("%s has no %q", path, name)
		}
	}
	return write(t, replace(all, kv), tensors)
}

// Ones is Fill with 1.
func Ones(t testing.TB, path string, names ...string) string {
	t.Helper()
	return Fill(t, path, 1, names...)
}

// Fill writes a copy of the model at path in which each element of the F32 tensors
// named is x; it returns the copy's path.
func Fill(t testing.TB, path string, x float32, names ...string) string {
	t.Helper()
	kv, tensors := contents(t, path)
	for _, name := range names {
		i := slices.IndexFunc(tensors, func(x gguf.TensorData) bool { return x.Name == name && x.Type == gguf.F32 })
		if i < 0 {
			t.Fatalf("%s has no F32 %q", path, name)
		}
		tensors[i].Data = bytes.Repeat(raw([]float32{x}), len(tensors[i].Data)/4)
	}
	return write(t, kv, tensors)
}

// Quantise writes a copy of the model at path in which the F32 tensors whose names
// end so have type kind; it returns the copy's path.
func Quantise(t testing.TB, path string, kind gguf.Type, ending string) string {
	t.Helper()
	kv, tensors := contents(t, path)
	n := 0
	for i, x := range tensors {
		if strings.HasSuffix(x.Name, ending) && x.Type == gguf.F32 {
			values := unsafe.Slice((*float32)(unsafe.Pointer(&x.Data[0])), len(x.Data)/4)
			tensors[i].Type, tensors[i].Data = kind, encode(kind, values, int(x.Shape[0]))
			n++
		}
	}
	if n == 0 {
		t.Fatalf("%s has no F32 tensor %q", path, ending)
	}
	return write(t, kv, tensors)
}

func contents(t testing.TB, path string) (kv []gguf.KV, tensors []gguf.TensorData) {
	t.Helper()
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, key := range f.Keys() {
		kv = append(kv, gguf.KV{Key: key, Value: value(f, key)})
	}
	for _, x := range f.Tensors() {
		data := make([]byte, x.Bytes())
		if err := f.ReadTensorAt(x, data, 0); err != nil {
			t.Fatal(err)
		}
		tensors = append(tensors, gguf.TensorData{Name: x.Name, Shape: x.Shape, Type: x.Type, Data: data})
	}
	return kv, tensors
}

func write(t testing.TB, kv []gguf.KV, tensors []gguf.TensorData) string {
	t.Helper()
	var b bytes.Buffer
	if err := gguf.Write(&b, kv, tensors); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "edited.gguf")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// value reads a key of whatever type; integers become 32 bits wide.
func value(f *gguf.File, key string) any {
	if v, ok := f.String(key); ok {
		return v
	}
	if v, ok := f.Bool(key); ok {
		return v
	}
	if v, ok := f.Uint(key); ok {
		return uint32(v)
	}
	if v, ok := f.Int(key); ok {
		return int32(v)
	}
	if v, ok := f.Float(key); ok {
		return float32(v)
	}
	if v, ok := f.Strings(key); ok {
		return v
	}
	if v, ok := f.Bools(key); ok {
		return v
	}
	if v, ok := f.Ints(key); ok {
		return v
	}
	v, _ := f.Floats(key)
	return v
}
