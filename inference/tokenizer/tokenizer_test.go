package tokenizer

import (
	"strings"
	"testing"
	"time"

	"daisy/inference/gguf"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSPM(t *testing.T) {
	tk, err := New(smallSPM(t))
	require.NoError(t, err)
	for _, c := range []struct {
		text            string
		special, parsed bool
		want            []string
	}{
		{"", false, false, []string{}},
		{"", true, false, []string{"<s>"}},
		{"ab", true, false, []string{"<s>", "▁ab"}},
		{"abc", false, false, []string{"▁", "abc"}}, // ab scores best, then abc
		{" abc", false, false, []string{"▁▁", "abc"}},
		{"  ab", false, false, []string{"▁▁", "▁ab"}},
		{"a<tool>bc", false, false, []string{"▁a", "<tool>", "▁", "bc"}}, // a space after a special token too
		{"é", false, false, []string{"▁", "<0xC3>", "<0xA9>"}},
		{"\xff\n", false, false, []string{"▁", "<0xFF>", "<0x0A>"}},
		{"<s>", false, false, []string{"▁", "<s", ">"}},
		{"<s>a", false, true, []string{"<s>", "▁a"}},
		{"<s>a", true, true, []string{"<s>", "▁a"}}, // BOS once
		{"a</s>", true, true, []string{"<s>", "▁a", "</s>"}},
	} {
		assert.Equal(t, c.want, spelt(tk, tk.Encode(c.text, c.special, c.parsed)), "%q", c.text)
	}
	for _, text := range []string{"abc", " abc", "  ", "é\xff", "a  b", ""} {
		assert.Equal(t, text, tk.Decode(tk.Encode(text, true, false)), "%q", text)
	}
}

func TestSPMFlags(t *testing.T) {
	tk, err := New(smallSPM(t, gguf.KV{Key: "add_space_prefix", Value: false}, gguf.KV{Key: "add_bos_token", Value: false},
		gguf.KV{Key: "add_eos_token", Value: true}))
	require.NoError(t, err)
	ids := tk.Encode("ab", true, false)
	assert.Equal(t, []string{"ab", "</s>"}, spelt(tk, ids))
	assert.Equal(t, "ab", tk.Decode(ids))
	assert.False(t, tk.AddsBOS())
}

func TestBPE(t *testing.T) {
	tk, err := New(smallBPE(t, "gpt-2"))
	require.NoError(t, err)
	for _, c := range []struct {
		text   string
		parsed bool
		want   []string
	}{
		{"hello world", false, []string{"hello", "Ġwor", "ld"}},
		{"<|im_end|>", true, []string{"<|im_end|>"}},
		{"<|im_end", true, []string{"<", "|", "i", "m", "_", "e", "n", "d"}},
		{"<|<|im_end|>", true, []string{"<", "|", "<|im_end|>"}},
		{"<think>he", false, []string{"<think>", "he"}},
		{"whole", false, []string{"w", "h", "o", "l", "e"}},
		{"\xff\n", false, []string{"ÿ", "Ċ"}},
	} {
		assert.Equal(t, c.want, spelt(tk, tk.Encode(c.text, false, c.parsed)), "%q", c.text)
	}
	for _, id := range tk.Encode("a <|im_end|> b <|im_start|>", true, false) {
		assert.False(t, tk.IsControl(id), "plain text gives no control token")
	}
	whole, err := New(smallBPE(t, "llama-bpe"))
	require.NoError(t, err)
	assert.Equal(t, []string{"<|im_start|>", "whole"}, spelt(whole, whole.Encode("whole", true, false)), "whole words, BOS by default")
}

func TestQwenComposes(t *testing.T) {
	tk, err := New(smallBPE(t, "qwen2"))
	require.NoError(t, err)
	assert.Equal(t, "\u00e9 \u0915\u093c \xff", tk.Decode(tk.Encode("e\u0301 \u0958 \xff", false, false)))
	plain, err := New(smallBPE(t, "llama-bpe"))
	require.NoError(t, err)
	assert.Equal(t, "e\u0301", plain.Decode(plain.Encode("e\u0301", false, false)))
}

func TestAccessors(t *testing.T) {
	tk, err := New(smallBPE(t, "gpt-2"))
	require.NoError(t, err)
	start, ok := tk.TokenID("<|im_start|>")
	require.True(t, ok)
	end, _ := tk.TokenID("<|im_end|>")
	think, _ := tk.TokenID("<think>")
	bos, ok := tk.BOS()
	assert.True(t, ok && bos == start)
	eos, ok := tk.EOS()
	assert.True(t, ok && eos == end)
	assert.True(t, tk.IsEOG(end))
	assert.False(t, tk.IsEOG(start))
	assert.True(t, tk.IsControl(start))
	assert.False(t, tk.IsControl(think))
	assert.Equal(t, "<think>", string(tk.Piece(think)))
	assert.Empty(t, tk.Piece(start))
	assert.Equal(t, 256+9+3, tk.VocabSize())
	for _, id := range []int32{-1, int32(tk.VocabSize())} {
		assert.Empty(t, tk.Piece(id))
		assert.Empty(t, tk.TokenText(id))
		assert.False(t, tk.IsControl(id))
		assert.False(t, tk.IsEOG(id))
	}
	_, ok = tk.TokenID("absent")
	assert.False(t, ok)
}

func TestHarmonyEndOfMessageDoesNotEndTheAnswer(t *testing.T) {
	texts := []string{"a", "<|end|>", "<|return|>", "<|call|>"}
	tk, err := New(source(t, gguf.KV{Key: "model", Value: "gpt2"}, gguf.KV{Key: "tokens", Value: texts},
		gguf.KV{Key: "merges", Value: []string{}}))
	require.NoError(t, err)
	assert.False(t, tk.IsEOG(1))
	assert.True(t, tk.IsEOG(2))
	assert.True(t, tk.IsEOG(3))
	assert.True(t, tk.IsControl(1))
}

func TestOrdinaryWordsDoNotEndTheAnswer(t *testing.T) {
	texts := []string{"a", "</s>", "<eos>", "<|im_end|>"}
	build := func(kind int32) *Tokenizer {
		tk, err := New(source(t, gguf.KV{Key: "model", Value: "gpt2"}, gguf.KV{Key: "tokens", Value: texts},
			gguf.KV{Key: "token_type", Value: []int32{1, kind, kind, 1}}, gguf.KV{Key: "merges", Value: []string{}}))
		require.NoError(t, err)
		return tk
	}
	plain := build(typeNormal)
	assert.False(t, plain.IsEOG(1) || plain.IsControl(1) || plain.IsEOG(2))
	assert.Equal(t, "</s>", string(plain.Piece(1)))
	assert.True(t, plain.IsEOG(3) && plain.IsControl(3), "no text is spelt so")
	control := build(typeControl)
	assert.True(t, control.IsEOG(1) && control.IsEOG(2))
}

func TestNewRefuses(t *testing.T) {
	kv := func(key string, v any) gguf.KV { return gguf.KV{Key: key, Value: v} }
	tokens := kv("tokens", []string{"a", "b"})
	for _, c := range []struct {
		kv   []gguf.KV
		want string
	}{
		{nil, "no vocabulary"},
		{[]gguf.KV{kv("tokens", []string{})}, "no vocabulary"},
		{[]gguf.KV{tokens}, "does not name its kind"},
		{[]gguf.KV{tokens, kv("model", "bert")}, `unsupported kind "bert"`},
		{[]gguf.KV{tokens, kv("token_type", []int32{1})}, "1 token types"},
		{[]gguf.KV{tokens, kv("model", "llama")}, "0 scores"},
		{[]gguf.KV{tokens, kv("model", "llama"), kv("scores", []float32{0, 0}), kv("token_type", []int32{6, 6})}, "byte token"},
		{[]gguf.KV{tokens, kv("model", "gpt2"), kv("pre", "klingon"), kv("merges", []string{})}, `unsupported pre-tokenizer "klingon"`},
		{[]gguf.KV{tokens, kv("model", "gpt2")}, "no merges"},
		{[]gguf.KV{tokens, kv("model", "gpt2"), kv("merges", []string{"ab"})}, "not two tokens"},
		{[]gguf.KV{tokens, kv("model", "gpt2"), kv("merges", []string{"abc"})}, "not two tokens"},
	} {
		_, err := New(source(t, c.kv...))
		assert.ErrorContains(t, err, c.want)
	}
}

// Time must grow with the text, not with its square; the bound is generous, a quadratic merge takes minutes.
func TestLongRunsAreEncodedInTime(t *testing.T) {
	for name, src := range map[string]*gguf.File{"spm": smallSPM(t), "bpe": smallBPE(t, "llama-bpe")} {
		tk, err := New(src)
		require.NoError(t, err)
		for _, unit := range []string{"a", "ab", "hello", " ", "\n", "\xff", "é", "1", "'", "<|im_", "Aé "} {
			text := strings.Repeat(unit, 1<<17/len(unit))
			start := time.Now()
			ids := tk.Encode(text, true, true)
			assert.Less(t, time.Since(start), 5*time.Second, "%s %q", name, unit)
			assert.True(t, tk.Decode(ids) == text, "%s %q", name, unit)
		}
	}
}
