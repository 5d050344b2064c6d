package tokenizer

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"daisy/inference/gguf"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// readGolden decodes a file that testdata/make_golden.py wrote.
func readGolden(t *testing.T, name string, into any) {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	require.NoError(t, err)
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(name, ".gz") {
		r, err = gzip.NewReader(f)
		require.NoError(t, err)
	}
	require.NoError(t, json.NewDecoder(r).Decode(into))
}

func TestPreTokenizersMatchTheReference(t *testing.T) {
	var golden struct {
		Texts  []string
		Splits map[string][][]int
	}
	readGolden(t, "splits.json.gz", &golden)
	assert.GreaterOrEqual(t, len(golden.Splits), 10)
	require.NotEmpty(t, golden.Texts)
	for name, want := range golden.Splits {
		t.Run(name, func(t *testing.T) {
			pre, ok := preTokenizers[name]
			require.True(t, ok)
			for i, text := range golden.Texts {
				lengths := []int{}
				pos := 0
				pre.split.each(text, func(piece string) {
					require.Equal(t, text[pos:pos+len(piece)], piece)
					pos += len(piece)
					lengths = append(lengths, len(piece))
				})
				assert.Equal(t, cuts(text, want[i]), cuts(text, lengths), "%q", text)
			}
		})
	}
}

// cuts shows where a text is cut.
func cuts(text string, lengths []int) []string {
	out := []string{}
	for _, n := range lengths {
		out = append(out, text[:n])
		text = text[n:]
	}
	return append(out, text)
}

func TestSmallBPEVocabularyMatchesTheReference(t *testing.T) {
	var golden struct {
		Tokens, Merges, Texts []string
		IDs                   [][]int32
	}
	readGolden(t, "bpe.json", &golden)
	require.NotEmpty(t, golden.Texts)
	tk, err := New(source(t, gguf.KV{Key: "model", Value: "gpt2"}, gguf.KV{Key: "pre", Value: "dbrx"},
		gguf.KV{Key: "tokens", Value: golden.Tokens}, gguf.KV{Key: "merges", Value: golden.Merges}))
	require.NoError(t, err)
	for i, text := range golden.Texts {
		ids := tk.Encode(text, true, true)
		assert.Equal(t, spelt(tk, golden.IDs[i]), spelt(tk, ids), "%q", text)
		assert.Equal(t, text, tk.Decode(ids))
	}
}

func TestSmallSPMVocabularyMatchesTheReference(t *testing.T) {
	var golden struct {
		Tokens []string
		Scores []float32
		Types  []int32
		Texts  []string
		IDs    [][]int32
	}
	readGolden(t, "spm.json", &golden)
	require.NotEmpty(t, golden.Texts)
	tk, err := New(source(t, gguf.KV{Key: "model", Value: "llama"}, gguf.KV{Key: "tokens", Value: golden.Tokens},
		gguf.KV{Key: "scores", Value: golden.Scores}, gguf.KV{Key: "token_type", Value: golden.Types},
		gguf.KV{Key: "unknown_token_id", Value: uint32(0)}))
	require.NoError(t, err)
	for i, text := range golden.Texts {
		ids := tk.Encode(text, false, false)
		if text != "" {
			assert.Equal(t, spelt(tk, golden.IDs[i]), spelt(tk, ids), "%q", text)
		}
		assert.Equal(t, text, tk.Decode(ids), "%q", text)
	}
}

// model opens the real model that `make model` brings.
func model135M(t testing.TB) *Tokenizer {
	path := filepath.Join("..", "..", "models", "SmolLM2-135M-Instruct.Q4_1.gguf")
	if _, err := os.Stat(path); err != nil {
		t.Skip("needs SmolLM2-135M-Instruct: run `make model`")
	}
	f, err := gguf.Open(path)
	require.NoError(t, err)
	defer f.Close()
	tk, err := New(f)
	require.NoError(t, err)
	return tk
}

func TestSmolLM2MatchesTheReference(t *testing.T) {
	var golden struct {
		Texts []string
		IDs   [][]int32
	}
	readGolden(t, "smollm2.json", &golden)
	require.NotEmpty(t, golden.Texts)
	tk := model135M(t)
	for i, text := range golden.Texts {
		ids := tk.Encode(text, true, false)
		assert.Equal(t, spelt(tk, golden.IDs[i]), spelt(tk, ids), "%q", text)
	}
	end, _ := tk.TokenID("<|im_end|>")
	assert.True(t, tk.IsEOG(end))
	assert.Equal(t, []int32{1, 4093, 198, 2}, tk.Encode("<|im_start|>user\n<|im_end|>", true, true))
}

// A megabyte takes under two seconds of one processor, whatever it is made of. (Processor time, so that a busy machine
// does not fail the test.)
func TestMegabyteInTwoSeconds(t *testing.T) {
	var golden struct{ Texts []string }
	readGolden(t, "smollm2.json", &golden)
	tk := model135M(t)
	size, limit := 1<<20, 2*time.Second
	if raceEnabled {
		size, limit = size/8, 2*limit
	}
	corpus := strings.Join(golden.Texts, "\n")
	for name, unit := range map[string]string{"corpus": corpus, "letters": "abcdefghij", "one letter": "a", "spaces": " ", "han": "你好世界"} {
		text := strings.Repeat(unit, size/len(unit)+1)[:size]
		start := processorTime(t)
		tk.Encode(text, true, true)
		assert.Less(t, processorTime(t)-start, limit, name)
	}
}

func processorTime(t *testing.T) time.Duration {
	var u syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func BenchmarkEncodeCorpusSmolLM2(b *testing.B) {
	tk := model135M(b)
	text, err := os.ReadFile(filepath.Join("testdata", "make_golden.py"))
	require.NoError(b, err)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		tk.Encode(string(text), true, true)
	}
}

// TestRealVocabularies checks published vocabularies, which are too large to commit; testdata/make_vocabulary.py says
// how to get them.
func TestRealVocabularies(t *testing.T) {
	dir := os.Getenv("DAISY_VOCABULARIES")
	if dir == "" {
		t.Skip("needs DAISY_VOCABULARIES: see testdata/make_vocabulary.py")
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*.gguf"))
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			var golden struct {
				Texts []string
				IDs   [][]int32
			}
			b, err := os.ReadFile(strings.TrimSuffix(path, ".gguf") + ".json")
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(b, &golden))
			f, err := gguf.Open(path)
			require.NoError(t, err)
			defer f.Close()
			tk, err := New(f)
			require.NoError(t, err)
			for i, text := range golden.Texts {
				assert.Equal(t, spelt(tk, golden.IDs[i]), spelt(tk, tk.Encode(text, false, true)), "%q", text)
			}
		})
	}
}
