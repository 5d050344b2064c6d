package model

import "daisy/inference/gguf"

// granite is the architecture of IBM's dense Granite 3 and 4 models: llama's, with
// multipliers on the embedding, the attention scores, what each half of a layer
// adds to the residual stream, and the logits.
type granite struct {
	p                           Params
	tied                        bool // no output matrix: the embedding's serves
	embedding, residual, logits float32
}

func newGranite(f *gguf.File) (Arch, error) {
	k := keys{f: f, arch: "granite"}
	k.noExperts()
	m := &granite{
		p:         k.params(),
		tied:      !k.has("output.weight"),
		embedding: k.positive("embedding_scale", 1),
		residual:  k.positive("residual_scale", 1),
		logits:    1 / k.positive("logit_scale", 1), // a divisor, by its name's leave
	}
	m.p.AttentionScale = k.positive("attention.scale", float64(m.p.AttentionScale))
	if rotates, ok := f.Bool("granite.rope.scaling.finetuned"); ok && !rotates {
		k.fail("granite without rotary positions: %w", ErrUnsupported)
	}
	return m, k.err
}

func (m *granite) Params() *Params { return &m.p }

func (m *granite) Specs() []Spec {
	p := &m.p
	q, kv := p.Heads*p.HeadDim, p.KVHeads*p.HeadDim
	specs := []Spec{
		{Name: "token_embd.weight", Shape: []int{p.Dim, p.Vocab}, Rule: VocabRows, Use: Lookup},
		{Name: "output_norm.weight", Shape: []int{p.Dim}, Use: Vector},
		{Name: "output.weight", Shape: []int{p.Dim, p.Vocab}, Rule: VocabRows, Optional: true},
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

func (m *granite) Build(b *Builder) {
	x := b.Embed("token_embd.weight", m.embedding)
	for i := range b.Layers() {
		at := block(i)
		h := b.RMSNorm(x, at("attn_norm.weight"))
		q, k, v := b.MulQKV(at, h)
		q = b.Rope(b.Heads(q), m.p.Rope)
		k = b.Rope(b.Heads(k), m.p.Rope)
		b.StoreKV(i, k, v)
		a := b.Attention(i, q, Attend{})
		if i == m.p.Layers-1 {
			if b.Outputs() == 0 {
				return // only the KV cache was wanted
			}
			a, x = b.SelectOutputs(a), b.SelectOutputs(x)
		}
		x = b.SumRanks(x, b.Scale(b.MulMat(at("attn_output.weight"), a), m.residual))
		h = b.RMSNorm(x, at("ffn_norm.weight"))
		h = b.SwiGLU(b.MulGateUp(at, h))
		x = b.SumRanks(x, b.Scale(b.MulMat(at("ffn_down.weight"), h), m.residual))
	}
	if b.HandOn(x) {
		return
	}
	b.Logits(b.Scale(b.MulMat(head(m.tied), b.RMSNorm(x, "output_norm.weight")), m.logits))
}
