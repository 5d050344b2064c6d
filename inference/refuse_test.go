package inference

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"daisy/inference/gguf"
	"daisy/inference/modeltest"
	"daisy/rdma"
	"daisy/rdma/mem"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

func TestRanksMustHaveTheSameFile(t *testing.T) {
	a, b := tiny(t, modeltest.Options{}), tiny(t, modeltest.Options{Seed: 7})
	var g errgroup.Group
	errs := make([]error, 2)
	for r, tr := range mem.New(2) {
		g.Go(func() error {
			_, errs[r] = Load(context.Background(), []string{a, b}[r], Options{Threads: 1, Group: rdma.NewGroup(tr, 1)})
			return nil
		})
	}
	require.NoError(t, g.Wait())
	for _, err := range errs { // each finds out by itself or is told by the other
		require.ErrorContains(t, err, "rank 1 has another model file")
	}
}

// Options that cannot work are refused, before memory is taken.
func TestNonsenseOptions(t *testing.T) {
	path := tiny(t, modeltest.Options{})
	for _, opt := range []Options{{Threads: -1}, {Threads: 600}, {Context: -1}, {Context: 1 << 20}, {Sequences: -1},
		{Sequences: 1000}, {Cache: 7}, {Shares: []float64{1, 1}}} {
		_, err := Load(context.Background(), path, opt)
		require.Error(t, err, "%+v", opt)
	}
}

// Every type that a file can name is either computed or refused: ggml itself
// would crash the process on some.
func TestEveryTypeOfWeights(t *testing.T) {
	ran := 0
	for kind := gguf.Type(0); kind < 64; kind++ {
		if !kind.Known() {
			continue
		}
		for _, name := range []string{"token_embd.weight", "blk.0.attn_q.weight", "blk.1.ffn_down.weight", "output.weight"} {
			kv, tensors := modeltest.Build(modeltest.Options{Dim: 256, FFN: 256, Heads: 8, KVHeads: 8, Context: 64})
			for i := range tensors {
				if tensors[i].Name == name {
					n := tensors[i].Shape[0] * tensors[i].Shape[1]
					tensors[i].Type, tensors[i].Data = kind, make([]byte, n/kind.BlockSize()*kind.BlockBytes())
				}
			}
			path := filepath.Join(t.TempDir(), "model.gguf")
			var b bytes.Buffer
			require.NoError(t, gguf.Write(&b, kv, tensors))
			require.NoError(t, os.WriteFile(path, b.Bytes(), 0o600))
			e, err := Load(context.Background(), path, Options{Threads: 1})
			if err != nil {
				require.ErrorIs(t, err, ErrUnsupported, "%s as %s", name, kind)
				continue
			}
			_, _ = ask(t, e, Request{Prompt: "Hi", MaxTokens: 2})
			require.NoError(t, e.Close())
			ran++
		}
	}
	require.GreaterOrEqual(t, ran, 4*20)
}

// More memory than the machine has is refused before it is taken.
func TestMemoryIsBounded(t *testing.T) {
	path := tiny(t, modeltest.Options{Context: 1 << 29})
	_, err := Load(context.Background(), path, Options{Context: 1 << 29, Sequences: 64})
	require.ErrorIs(t, err, ErrNoMemory)
	require.ErrorContains(t, err, "GB")
}

// What is no model, or no whole one, is one clear line.
func TestBrokenFiles(t *testing.T) {
	good, err := os.ReadFile(tiny(t, modeltest.Options{}))
	require.NoError(t, err)
	for name, data := range map[string][]byte{
		"empty":           {},
		"no GGUF":         []byte("This is no model at all, just a line of text."),
		"cut in header":   good[:200],
		"cut in tensors":  good[:len(good)-1000],
		"absurd count":    append(append(append([]byte{}, good[:8]...), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f), good[16:]...),
		"absurd KV count": append(append(append([]byte{}, good[:16]...), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f), good[24:]...),
		"unknown version": append(append(append([]byte{}, good[:4]...), 99, 0, 0, 0), good[8:]...),
		"directory":       nil,
		"no such file":    nil,
	} {
		path := filepath.Join(t.TempDir(), "model.gguf")
		switch name {
		case "directory":
			require.NoError(t, os.Mkdir(path, 0o700))
		case "no such file":
		default:
			require.NoError(t, os.WriteFile(path, data, 0o600))
		}
		_, err := Load(context.Background(), path, Options{})
		require.Error(t, err, name)
		require.NotContains(t, err.Error(), "\n", name)
		require.Contains(t, err.Error(), "model.gguf", name)
	}
}
