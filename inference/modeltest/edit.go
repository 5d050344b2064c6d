package modeltest

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

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

// Ones writes a copy of the model at path in which each element of the F32 tensors
// named is 1; it returns the copy's path.
func Ones(t testing.TB, path string, names ...string) string {
	t.Helper()
	kv, tensors := contents(t, path)
	for _, name := range names {
		i := slices.IndexFunc(tensors, func(x gguf.TensorData) bool { return x.Name == name && x.Type == gguf.F32 })
		if i < 0 {
			t.Fatalf("%s has no F32 %q", path, name)
		}
		tensors[i].Data = bytes.Repeat(raw([]float32{1}), len(tensors[i].Data)/4)
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
