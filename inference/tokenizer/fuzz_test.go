package tokenizer

import (
	"strings"
	"testing"

	"daisy/inference/gguf"

	"github.com/stretchr/testify/require"
)

// FuzzEncode checks that any bytes survive encoding and decoding, and that plain text gives no control token.
func FuzzEncode(f *testing.F) {
	var all []*Tokenizer
	for _, src := range []*gguf.File{smallSPM(f), smallBPE(f, "gpt-2"), smallBPE(f, "llama-bpe"), smallBPE(f, "gpt-4o"),
		smallBPE(f, "deepseek-v3"), smallBPE(f, "deepseek-llm"), smallBPE(f, "kimi-k2"), smallBPE(f, "default"), smallBPE(f, "tekken")} {
		tk, err := New(src)
		require.NoError(f, err)
		all = append(all, tk)
	}
	for _, s := range []string{"hello world", " abc  ", "<|im_start|><s><tool><think>", "नमस्ते 👩‍👩‍👧 \xff\xc3", "'S 12345 中A/\r\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for i, tk := range all {
			ids := tk.Encode(text, false, false)
			if i > 0 || !strings.Contains(text, spaceMark) && !strings.Contains(text, "<tool>") { // both add or lose spaces in SentencePiece
				require.Equal(t, text, tk.Decode(ids))
			}
			for _, id := range ids {
				require.False(t, tk.IsControl(id))
			}
			for _, id := range tk.Encode(text, true, true) {
				require.NotEmpty(t, tk.TokenText(id))
			}
		}
	})
}

// FuzzNew builds tokenizers from strange vocabularies.
func FuzzNew(f *testing.F) {
	f.Add("a\nb\nab\n<0x0A>\n<s>", "a b\n\nx", "\x01\x01\x01\x06\x03", true, uint32(4), "ab<s>")
	f.Add("\u0120\n\u0120a\n<think>", "\u0120 a", "\x01\x01\x04", false, uint32(9), " a<think>")
	f.Fuzz(func(t *testing.T, tokens, merges, kinds string, spm bool, bos uint32, text string) {
		list := strings.Split(tokens, "\n")
		types, scores := make([]int32, len(list)), make([]float32, len(list))
		for i := range list {
			if i < len(kinds) {
				types[i] = int32(kinds[i])
				scores[i] = float32(int8(kinds[i]))
			}
		}
		kind := "gpt2"
		if spm {
			kind = "llama"
		}
		tk, err := New(source(t, gguf.KV{Key: "model", Value: kind}, gguf.KV{Key: "pre", Value: "qwen2"}, gguf.KV{Key: "tokens", Value: list},
			gguf.KV{Key: "merges", Value: strings.Split(merges, "\n")}, gguf.KV{Key: "token_type", Value: types},
			gguf.KV{Key: "scores", Value: scores}, gguf.KV{Key: "bos_token_id", Value: bos}))
		if err != nil {
			return
		}
		for _, id := range tk.Encode(text, true, true) {
			require.True(t, tk.valid(id))
		}
		tk.Decode([]int32{-1, 0, int32(len(list))})
	})
}
