package model

import (
	"fmt"
	"math"

	"daisy/inference/gguf"
)

// keys reads an architecture's metadata and keeps the first error, so that a
// list of keys reads as a list.
type keys struct {
	f    *gguf.File
	arch string
	err  error
}

// Most that a hyperparameter may be: beyond every real model, small enough that
// products of two cannot overflow.
const (
	maxLayers = 4096
	maxDim    = 1 << 17
	maxVocab  = 1 << 22
)

// block names the tensors of layer i.
func block(i int) func(name string) string {
	return func(name string) string { return fmt.Sprintf("blk.%d.%s", i, name) }
}

// count reads a required positive integer up to most.
func (k *keys) count(key string, most int) int {
	n := k.countOr(key, -1, most)
	if n < 0 && k.err == nil {
		k.fail("%s.%s is missing", k.arch, key)
	}
	return n
}

// countOr is count with a default for an absent key.
func (k *keys) countOr(key string, absent, most int) int {
	n, ok := k.f.Uint(k.arch + "." + key)
	if !ok {
		if _, array := k.f.Ints(k.arch + "." + key); array {
			k.fail("%s.%s differs by layer: %w", k.arch, key, ErrUnsupported)
		}
		return absent
	}
	if n < 1 || n > uint64(most) {
		k.fail("%s.%s = %d is not in 1..%d", k.arch, key, n, most)
		return 1
	}
	return int(n)
}

// float reads a finite number, with a default for an absent key.
func (k *keys) float(key string, absent float64) float32 {
	x, ok := k.f.Float(k.arch + "." + key)
	if !ok {
		return float32(absent)
	}
	if math.IsNaN(x) || math.IsInf(x, 0) {
		k.fail("%s.%s is %v", k.arch, key, x)
	}
	return float32(x)
}

// flag reads a truth value, with a default for an absent key.
func (k *keys) flag(key string, absent bool) bool {
	if b, ok := k.f.Bool(k.arch + "." + key); ok {
		return b
	}
	return absent
}

// text reads a string, with a default for an absent key.
func (k *keys) text(key, absent string) string {
	if s, ok := k.f.String(k.arch + "." + key); ok {
		return s
	}
	return absent
}

// params reads the hyperparameters that all architectures with one width of head
// have.
func (k *keys) params() Params {
	p := Params{
		Name:       k.arch,
		Layers:     k.count("block_count", maxLayers),
		Dim:        k.count("embedding_length", maxDim),
		Heads:      k.count("attention.head_count", maxDim),
		FFN:        k.count("feed_forward_length", maxDim),
		TrainedCtx: k.count("context_length", 1<<30),
		Eps:        k.float("attention.layer_norm_rms_epsilon", 1e-5),
	}
	if k.err != nil {
		return p
	}
	p.KVHeads = k.countOr("attention.head_count_kv", p.Heads, p.Heads)
	p.HeadDim = k.countOr("attention.key_length", max(1, p.Dim/p.Heads), maxDim)
	if v := k.countOr("attention.value_length", p.HeadDim, maxDim); v != p.HeadDim {
		k.fail("%s.attention.value_length %d differs from key_length %d: %w", k.arch, v, p.HeadDim, ErrUnsupported)
	}
	if p.Eps < 0 {
		k.fail("%s.attention.layer_norm_rms_epsilon = %v is negative", k.arch, p.Eps)
	}
	if p.Heads%p.KVHeads != 0 {
		k.fail("%s: %d heads cannot share %d KV heads", k.arch, p.Heads, p.KVHeads)
	}
	p.AttentionScale = float32(1 / math.Sqrt(float64(p.HeadDim)))
	p.Rope = k.rope(p.HeadDim, p.TrainedCtx)
	p.Vocab = k.vocab()
	return p
}

// vocab is how many rows the embedding has; the tokenizer must not need more.
func (k *keys) vocab() int {
	embed, ok := k.f.Tensor("token_embd.weight")
	if !ok || len(embed.Shape) != 2 || embed.Shape[1] > maxVocab {
		k.fail("tensor %q is missing or no matrix", "token_embd.weight")
		return 1
	}
	return int(embed.Shape[1])
}

// noExperts refuses a file whose feed-forward is a mixture of experts.
func (k *keys) noExperts() {
	if k.countOr("expert_count", 1, maxDim) > 1 {
		k.fail("%s with experts: %w", k.arch, ErrUnsupported)
	}
}

// positive reads a number above 0, with a default for an absent key.
func (k *keys) positive(key string, absent float64) float32 {
	x := k.float(key, absent)
	if x <= 0 {
		k.fail("%s.%s = %v is not positive", k.arch, key, x)
		return 1
	}
	return x
}

// window reads how many positions windowed layers see; 0 when none is windowed,
// for which files have 0 or no key.
func (k *keys) window() int {
	if n, ok := k.f.Uint(k.arch + ".attention.sliding_window"); ok && n == 0 {
		return 0
	}
	return k.countOr("attention.sliding_window", 0, 1<<30)
}

// has tells whether the file has a tensor.
func (k *keys) has(name string) bool {
	_, ok := k.f.Tensor(name)
	return ok
}

func (k *keys) fail(format string, args ...any) {
	if k.err == nil {
		k.err = fmt.Errorf(format, args...)
	}
}
