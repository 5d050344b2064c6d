package model

import "daisy/inference/gguf"

// llama is the architecture of Llama 2 and 3.x, TinyLlama, SmolLM2 and others:
// pre-normalised attention with grouped KV heads and rotary positions, then a
// SwiGLU feed-forward, each added to the residual stream.
type llama struct {
	p    Params
	tied bool // no output matrix: the embedding's serves
}

func newLlama(f *gguf.File) (Arch, error) {
	k := keys{f: f, arch: "llama"}
	k.noExperts()
	return &llama{p: k.params(), tied: !k.has("output.weight")}, k.err
}

func (m *llama) Params() *Params { return &m.p }

func (m *llama) Specs() []Spec {
	p := &m.p
	q, kv := p.Heads*p.HeadDim, p.KVHeads*p.HeadDim
	specs := []Spec{
		{Name: "token_embd.weight", Shape: []int{p.Dim, p.Vocab}, Rule: VocabRows, Use: Lookup},
		{Name: "output_norm.weight", Shape: []int{p.Dim}, Use: Vector},
		{Name: "output.weight", Shape: []int{p.Dim, p.Vocab}, Rule: VocabRows, Optional: true},
		{Name: "rope_freqs.weight", Shape: []int{p.Rope.Dims / 2}, Use: Vector, Optional: true}, // Llama 3
	}
	for i := range p.Layers {
		at := block(i)
		specs = append(specs,
			Spec{Name: at("attn_norm.weight"), Shape: []int{p.Dim}, Use: Vector},
			Spec{Name: at("attn_q.weight"), Shape: []int{p.Dim, q}, Rule: HeadRows, Join: at("qkv")},
			Spec{Name: at("attn_k.weight"), Shape: []int{p.Dim, kv}, Rule: KVHeadRows, Join: at("qkv")},
			Spec{Name: at("attn_v.weight"), Shape: []int{p.Dim, kv}, Rule: KVHeadRows, Join: at("qkv")},
			Spec{Name: at("attn_output.weight"), Shape: []int{q, p.Dim}, Rule: HeadColumns},
			Spec{Name: at("ffn_norm.weight"), Shape: []int{p.Dim}, Use: Vector},
			Spec{Name: at("ffn_gate.weight"), Shape: []int{p.Dim, p.FFN}, Rule: FFNRows, Join: at("gate and up")},
			Spec{Name: at("ffn_up.weight"), Shape: []int{p.Dim, p.FFN}, Rule: FFNRows, Join: at("gate and up")},
			Spec{Name: at("ffn_down.weight"), Shape: []int{p.FFN, p.Dim}, Rule: FFNColumns},
		)
	}
	return specs
}

func (m *llama) Build(b *Builder) {
	rope := m.p.Rope
	rope.FreqFactors = b.Weight("rope_freqs.weight")
	x := b.Embed("token_embd.weight", 1)
	for i := range b.Layers() {
		at := block(i)
		h := b.RMSNorm(x, at("attn_norm.weight"))
		q, k, v := b.MulQKV(at, h)
		q = b.Rope(b.Heads(q), rope)
		k = b.Rope(b.Heads(k), rope)
		b.StoreKV(i, k, v)
		a := b.Attention(i, q, Attend{})
		if i == m.p.Layers-1 {
			if b.Outputs() == 0 {
				return // only the KV cache was wanted
			}
			a, x = b.SelectOutputs(a), b.SelectOutputs(x)
		}
		x = b.SumRanks(x, b.MulMat(at("attn_output.weight"), a))
		h = b.RMSNorm(x, at("ffn_norm.weight"))
		h = b.SwiGLU(b.MulGateUp(at, h))
		x = b.SumRanks(x, b.MulMat(at("ffn_down.weight"), h))
	}
	if b.HandOn(x) {
		return
	}
	b.Logits(b.MulMat(head(m.tied), b.RMSNorm(x, "output_norm.weight")))
}

// head is the matrix of the logits.
func head(tied bool) string {
	if tied {
		return "token_embd.weight"
	}
	return "output.weight"
}
