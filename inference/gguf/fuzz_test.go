package gguf

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzParse feeds arbitrary bytes; what parses must survive being written and parsed again, and all its tensors read.
func FuzzParse(f *testing.F) {
	f.Add(encode(f, sampleKV(), sampleTensors()))
	f.Add(encode(f, splitKV(0, 3), sampleTensors()[:1]))
	f.Add(encode(f, []KV{{"general.alignment", uint32(64)}}, sampleTensors()[1:]))
	for _, c := range malformed {
		f.Add(c.b.Bytes())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := parseBytes(b)
		if err != nil {
			require.NotContains(t, err.Error(), "\n")
			return
		}
		var kv []KV
		for _, key := range file.Keys() {
			v := file.meta[key]
			if key == "general.alignment" {
				a, _ := file.Uint(key)
				v = uint32(a)
			}
			kv = append(kv, KV{key, v})
		}
		var tensors []TensorData
		for _, tensor := range file.Tensors() {
			data := make([]byte, tensor.Bytes())
			require.NoError(t, file.ReadTensorAt(tensor, data, 0))
			tensors = append(tensors, TensorData{tensor.Name, tensor.Shape, tensor.Type, data})
		}
		again, err := parseBytes(encode(t, kv, tensors))
		require.NoError(t, err)
		require.Equal(t, file.keys, again.keys)
		require.Equal(t, len(file.tensors), len(again.tensors))
		for i, tensor := range again.tensors {
			data := make([]byte, tensor.Bytes())
			require.NoError(t, again.ReadTensorAt(tensor, data, 0))
			require.Equal(t, tensors[i], TensorData{tensor.Name, tensor.Shape, tensor.Type, data})
		}
	})
}
