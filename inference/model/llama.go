package model

import (
	"fmt"
	"math"

	"daisy/inference/gguf"
)

// llama is the architecture of Llama 2 and 3.x, TinyLlama, SmolLM2 and others:
// pre-normalised attention with grouped KV heads and rotary positions, then a
// SwiGLU feed-forward, each added to the residual stream.
type llama struct {
	p      Params
	tied   bool // no output matrix: the embedding's serves
	layers []llamaLayer
}

type llamaLayer struct {
	attnNorm, q, k, v, attnOut, ffnNorm, gate, up, down string
}

func newLlama(f *gguf.File) (Arch, error) {
	k := keys{f: f, arch: "llama"}
	p := Params{
		Name:       "llama",
		Layers:     k.count("block_count", maxLayers),
		Dim:        k.count("embedding_length", maxDim),
		Heads:      k.count("attention.head_count", maxDim),
		FFN:        k.count("feed_forward_length", maxDim),
		TrainedCtx: k.count("context_length", 1<<30),
		Eps:        k.float("attention.layer_norm_rms_epsilon", 1e-5),
	}
	if k.err != nil {
		return nil, k.err
	}
	p.KVHeads = k.countOr("attention.head_count_kv", p.Heads, p.Heads)
	p.HeadDim = k.countOr("attention.key_length", max(1, p.Dim/p.Heads), maxDim)
	if v := k.countOr("attention.value_length", p.HeadDim, maxDim); v != p.HeadDim {
		k.fail("llama.attention.value_length %d differs from key_length %d: %w", v, p.HeadDim, ErrUnsupported)
	}
	if p.Heads%p.KVHeads != 0 {
		k.fail("llama: %d heads cannot share %d KV heads", p.Heads, p.KVHeads)
	}
	if k.countOr("expert_count", 1, maxDim) > 1 {
		k.fail("llama with experts: %w", ErrUnsupported)
	}
	p.AttentionScale = float32(1 / math.Sqrt(float64(p.HeadDim)))
	p.Rope = k.rope(p.HeadDim, p.TrainedCtx)
	if k.err != nil {
		return nil, k.err
	}
	// The vocabulary is as long as the embedding; the tokenizer must agree.
	embed, ok := f.Tensor("token_embd.weight")
	if !ok || len(embed.Shape) != 2 || embed.Shape[1] > maxDim {
		return nil, fmt.Errorf("tensor %q is missing or no matrix", "token_embd.weight")
	}
	p.Vocab = int(embed.Shape[1])

	m := &llama{p: p}
	_, hasOutput := f.Tensor("output.weight")
	m.tied = !hasOutput
	for i := range p.Layers {
		at := func(name string) string { return fmt.Sprintf("blk.%d.%s.weight", i, name) }
		m.layers = append(m.layers, llamaLayer{at("attn_norm"), at("attn_q"), at("attn_k"), at("attn_v"),
			at("attn_output"), at("ffn_norm"), at("ffn_gate"), at("ffn_up"), at("ffn_down")})
	}
	return m, nil
}

func (m *llama) Params() *Params { return &m.p }

func (m *llama) Specs() []Spec {
	p := &m.p
	q, kv := p.Heads*p.HeadDim, p.KVHeads*p.HeadDim
	specs := []Spec{
		{Name: "token_embd.weight", Shape: []int{p.Dim, p.Vocab}, Rule: VocabRows, Use: Lookup},
		{Name: "output_norm.weight", Shape: []int{p.Dim}, Use: Vector},
		{Name: "output.weight", Shape: []int{p.Dim, p.Vocab}, Rule: VocabRows, Optional: true},
		{Name: "rope_freqs.weight", Shape: []int{p.Rope.Dims / 2}, Use: Vector, Optional: true},
	}
	for _, l := range m.layers {
		specs = append(specs,
			Spec{Name: l.attnNorm, Shape: []int{p.Dim}, Use: Vector},
			Spec{Name: l.q, Shape: []int{p.Dim, q}, Rule: HeadRows},
			Spec{Name: l.k, Shape: []int{p.Dim, kv}, Rule: KVHeadRows},
			Spec{Name: l.v, Shape: []int{p.Dim, kv}, Rule: KVHeadRows},
			Spec{Name: l.attnOut, Shape: []int{q, p.Dim}, Rule: HeadColumns},
			Spec{Name: l.ffnNorm, Shape: []int{p.Dim}, Use: Vector},
			Spec{Name: l.gate, Shape: []int{p.Dim, p.FFN}, Rule: FFNRows},
			Spec{Name: l.up, Shape: []int{p.Dim, p.FFN}, Rule: FFNRows},
			Spec{Name: l.down, Shape: []int{p.FFN, p.Dim}, Rule: FFNColumns},
		)
	}
	return specs
}

func (m *llama) Build(b *Builder) {
	rope := m.p.Rope
	rope.FreqFactors = b.Weight("rope_freqs.weight")
	x := b.Embed("token_embd.weight")
	for i, l := range m.layers {
		h := b.RMSNorm(x, l.attnNorm)
		q := b.Rope(b.Heads(b.MulMat(l.q, h)), rope)
		k := b.Rope(b.Heads(b.MulMat(l.k, h)), rope)
		b.StoreKV(i, k, b.MulMat(l.v, h))
		if i == len(m.layers)-1 {
			if b.Outputs() == 0 {
				return // only the KV cache was wanted
			}
			a := b.SelectOutputs(b.Attention(i, q, Attend{}))
			x = b.SumRanks(b.SelectOutputs(x), b.MulMat(l.attnOut, a))
		} else {
			x = b.SumRanks(x, b.MulMat(l.attnOut, b.Attention(i, q, Attend{})))
		}
		h = b.RMSNorm(x, l.ffnNorm)
		x = b.SumRanks(x, b.MulMat(l.down, b.SwiGLU(b.MulMat(l.gate, h), b.MulMat(l.up, h))))
	}
	x = b.RMSNorm(x, "output_norm.weight")
	if m.tied {
		b.Logits(b.MulMat("token_embd.weight", x))
	} else {
		b.Logits(b.MulMat("output.weight", x))
	}
}
