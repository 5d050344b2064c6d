// Package modeltest writes tiny real models for tests: random weights from a
// seed, so that a test needs no download and greedy answers repeat.
package modeltest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"unsafe"

	"daisy/inference/ggml"
	"daisy/inference/gguf"
)

// Options shape the model; the zero value is a llama of about 200 KiB with three
// KV heads, which two ranks cannot share equally.
type Options struct {
	Layers, Dim, Heads, KVHeads, HeadDim, FFN, Context int
	Type                                               gguf.Type // of the matrices; F32 when 0
	Tied                                               bool      // no output matrix of its own
	RopeFactors                                        bool      // with rope_freqs.weight, as Llama 3 has
	Seed                                               uint64
	Attention                                          float32   // how much attention adds; 1 when 0
	KV                                                 []gguf.KV // more metadata; replaces what has the same key
}

func (o Options) filled() Options {
	def := func(x *int, n int) {
		if *x == 0 {
			*x = n
		}
	}
	def(&o.Layers, 2)
	def(&o.Dim, 64)
	def(&o.Heads, 6)
	def(&o.KVHeads, 3)
	def(&o.HeadDim, 32)
	def(&o.FFN, 160)
	def(&o.Context, 512)
	if o.Attention == 0 {
		o.Attention = 1
	}
	return o
}

// vocab is the byte tokens, three control tokens and the two turn markers.
const vocab = 3 + 256 + 2

// ChatTemplate is the model's own.
const ChatTemplate = "{% for m in messages %}{{ '<|turn|>' + m['role'] + '\n' + m['content'] + '<|end|>' }}{% endfor %}" +
	"{% if add_generation_prompt %}{{ '<|turn|>assistant\n' }}{% endif %}"

// Write writes a model to path.
func Write(t testing.TB, path string, opt Options) {
	t.Helper()
	var b bytes.Buffer
	kv, tensors := Build(opt)
	if err := gguf.Write(&b, kv, tensors); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Build returns what Write writes.
func Build(opt Options) ([]gguf.KV, []gguf.TensorData) {
	o := opt.filled()
	rng := rand.New(rand.NewPCG(o.Seed, 1))
	var tensors []gguf.TensorData
	matrix := func(name string, ne0, ne1 int, scale float32) {
		x := make([]float32, ne0*ne1)
		for i := range x {
			x[i] = float32(rng.NormFloat64()) * scale
		}
		tensors = append(tensors, gguf.TensorData{Name: name, Shape: []int64{int64(ne0), int64(ne1)}, Type: o.Type,
			Data: encode(o.Type, x, ne0)})
	}
	vector := func(name string, n int, value func() float32) {
		x := make([]float32, n)
		for i := range x {
			x[i] = value()
		}
		tensors = append(tensors, gguf.TensorData{Name: name, Shape: []int64{int64(n)}, Type: gguf.F32, Data: raw(x)})
	}
	norm := func() float32 { return 1 + 0.1*float32(rng.NormFloat64()) }

	q, kvDim := o.Heads*o.HeadDim, o.KVHeads*o.HeadDim
	matrix("token_embd.weight", o.Dim, vocab, 1)
	for i := range o.Layers {
		at := func(name string) string { return fmt.Sprintf("blk.%d.%s.weight", i, name) }
		vector(at("attn_norm"), o.Dim, norm)
		matrix(at("attn_q"), o.Dim, q, 0.2)
		matrix(at("attn_k"), o.Dim, kvDim, 0.2)
		matrix(at("attn_v"), o.Dim, kvDim, 0.2)
		matrix(at("attn_output"), q, o.Dim, 0.2*o.Attention)
		vector(at("ffn_norm"), o.Dim, norm)
		matrix(at("ffn_gate"), o.Dim, o.FFN, 0.2)
		matrix(at("ffn_up"), o.Dim, o.FFN, 0.2)
		matrix(at("ffn_down"), o.FFN, o.Dim, 0.2)
	}
	vector("output_norm.weight", o.Dim, norm)
	if !o.Tied {
		matrix("output.weight", o.Dim, vocab, 0.3)
	}
	if o.RopeFactors {
		f := float32(1)
		vector("rope_freqs.weight", o.HeadDim/2, func() float32 { f *= 1.1; return f })
	}
	return replace(metadata(o), o.KV), tensors
}

func metadata(o Options) []gguf.KV {
	u := func(n int) uint32 { return uint32(n) }
	tokens := []string{"<unk>", "<s>", "</s>"}
	kinds := []int32{2, 3, 3} // unknown, control, control
	for i := range 256 {
		tokens = append(tokens, fmt.Sprintf("<0x%02X>", i))
		kinds = append(kinds, 6) // byte
	}
	tokens = append(tokens, "<|turn|>", "<|end|>")
	kinds = append(kinds, 3, 3)
	return []gguf.KV{
		{Key: "general.architecture", Value: "llama"},
		{Key: "general.name", Value: "Tiny test model"},
		{Key: "llama.context_length", Value: u(o.Context)},
		{Key: "llama.embedding_length", Value: u(o.Dim)},
		{Key: "llama.block_count", Value: u(o.Layers)},
		{Key: "llama.feed_forward_length", Value: u(o.FFN)},
		{Key: "llama.attention.head_count", Value: u(o.Heads)},
		{Key: "llama.attention.head_count_kv", Value: u(o.KVHeads)},
		{Key: "llama.attention.key_length", Value: u(o.HeadDim)},
		{Key: "llama.attention.value_length", Value: u(o.HeadDim)},
		{Key: "llama.rope.dimension_count", Value: u(o.HeadDim)},
		{Key: "llama.rope.freq_base", Value: float32(10000)},
		{Key: "llama.attention.layer_norm_rms_epsilon", Value: float32(1e-5)},
		{Key: "tokenizer.ggml.model", Value: "llama"},
		{Key: "tokenizer.ggml.tokens", Value: tokens},
		{Key: "tokenizer.ggml.scores", Value: make([]float32, len(tokens))},
		{Key: "tokenizer.ggml.token_type", Value: kinds},
		{Key: "tokenizer.ggml.unknown_token_id", Value: uint32(0)},
		{Key: "tokenizer.ggml.bos_token_id", Value: uint32(1)},
		{Key: "tokenizer.ggml.eos_token_id", Value: uint32(2)},
		{Key: "tokenizer.ggml.add_bos_token", Value: true},
		{Key: "tokenizer.chat_template", Value: ChatTemplate},
	}
}

func replace(kv, more []gguf.KV) []gguf.KV {
next:
	for _, m := range more {
		for i := range kv {
			if kv[i].Key == m.Key {
				kv[i] = m
				continue next
			}
		}
		kv = append(kv, m)
	}
	return kv
}

// encode turns rows of ne0 values into type t.
func encode(t gguf.Type, x []float32, ne0 int) []byte {
	if t == gguf.F32 {
		return raw(x)
	}
	return ggml.Quantize(ggml.Type(t), x, ne0)
}

func raw(x []float32) []byte {
	return bytes.Clone(unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), 4*len(x)))
}
