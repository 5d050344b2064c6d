package tokenizer

import (
	"bytes"
	"testing"

	"daisy/inference/gguf"

	"github.com/stretchr/testify/require"
)

// source builds the metadata that New reads, through a real file.
func source(t testing.TB, kv ...gguf.KV) *gguf.File {
	t.Helper()
	for i := range kv {
		kv[i].Key = "tokenizer.ggml." + kv[i].Key
	}
	var b bytes.Buffer
	require.NoError(t, gguf.Write(&b, kv, nil))
	f, err := gguf.Parse(bytes.NewReader(b.Bytes()), int64(b.Len()))
	require.NoError(t, err)
	return f
}

// smallSPM is a SentencePiece vocabulary with all bytes and a few words.
func smallSPM(t testing.TB, more ...gguf.KV) *gguf.File {
	texts := []string{"<unk>", "<s>", "</s>"}
	types := []int32{typeUnknown, typeControl, typeControl}
	for b := range 256 {
		texts = append(texts, "<0x"+string("0123456789ABCDEF"[b>>4])+string("0123456789ABCDEF"[b&15])+">")
		types = append(types, typeByte)
	}
	scores := make([]float32, len(texts))
	for i, w := range []string{"▁", "a", "b", "c", "ab", "bc", "abc", "▁a", "▁ab", "▁▁", "<tool>", "<", "s", ">", "<s"} {
		texts = append(texts, w)
		kind := int32(typeNormal)
		if w == "<tool>" {
			kind = typeUserDefined
		}
		types = append(types, kind)
		scores = append(scores, -float32(i))
	}
	return source(t, append([]gguf.KV{
		{Key: "model", Value: "llama"}, {Key: "tokens", Value: texts}, {Key: "token_type", Value: types},
		{Key: "scores", Value: scores}, {Key: "bos_token_id", Value: uint32(1)}, {Key: "eos_token_id", Value: uint32(2)},
		{Key: "unknown_token_id", Value: uint32(0)},
	}, more...)...)
}

// smallBPE is a byte-level vocabulary with all bytes, a few merges and ChatML's control tokens.
func smallBPE(t testing.TB, pre string, more ...gguf.KV) *gguf.File {
	var texts []string
	var types []int32
	spell := map[byte]string{}
	for r, b := range byteOf {
		if b >= 0 {
			spell[byte(b)] = string(rune(r))
			texts = append(texts, string(rune(r)))
			types = append(types, typeNormal)
		}
	}
	merges := []string{"h e", "l l", "he ll", "hell o", "Ġ w", "o r", "Ġw or", "l d"}
	for _, w := range []string{"he", "ll", "hell", "hello", "Ġw", "or", "Ġwor", "ld", "whole"} {
		texts, types = append(texts, w), append(types, typeNormal)
	}
	texts = append(texts, "<|im_start|>", "<|im_end|>", "<think>")
	types = append(types, typeControl, typeControl, typeUserDefined)
	return source(t, append([]gguf.KV{
		{Key: "model", Value: "gpt2"}, {Key: "pre", Value: pre}, {Key: "tokens", Value: texts},
		{Key: "token_type", Value: types}, {Key: "merges", Value: merges},
		{Key: "bos_token_id", Value: uint32(len(texts) - 3)}, {Key: "eos_token_id", Value: uint32(len(texts) - 2)},
	}, more...)...)
}

func spelt(tk *Tokenizer, ids []int32) []string {
	out := []string{}
	for _, id := range ids {
		out = append(out, tk.TokenText(id))
	}
	return out
}
