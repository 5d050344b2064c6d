package modeltest

import (
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
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	dropped := map[string]bool{}
	gone := func(name string) bool {
		if !slices.Contains(drop, name) {
			return false
		}
		dropped[name] = true
		return true
	}
	var all []gguf.KV
	for _, key := range f.Keys() {
		if !gone(key) {
			all = append(all, gguf.KV{Key: key, Value: value(f, key)})
		}
	}
	var tensors []gguf.TensorData
	for _, x := range f.Tensors() {
		if gone(x.Name) {
			continue
		}
		data := make([]byte, x.Bytes())
		if err := f.ReadTensorAt(x, data, 0); err != nil {
			t.Fatal(err)
		}
		tensors = append(tensors, gguf.TensorData{Name: x.Name, Shape: x.Shape, Type: x.Type, Data: data})
	}
	for _, name := range drop {
		if !dropped[name] {
			t.Fatalf("%s has no %q", path, name)
		}
	}
	copied := filepath.Join(t.TempDir(), "edited.gguf")
	w, err := os.Create(copied)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := gguf.Write(w, replace(all, kv), tensors); err != nil {
		t.Fatal(err)
	}
	return copied
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
