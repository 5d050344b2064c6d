package model

import "daisy/inference/gguf"

// qwen3 is the architecture of Qwen 3's dense models: llama's, with each head's
// query and key normalised before they are rotated.
type qwen3 struct {
	p    Params
	tied bool // no output matrix: the embedding's serves
}

func newQwen3(f *gguf.File) (Arch, error) {
	k := keys{f: f, arch: "qwen3"}
	k.noExperts()
	m := &qwen3{p: k.params(), tied: !k.has("output.weight")}
	m.p.Rope.NeoX = true
	return m, k.err
}

func (m *qwen3) Params() *Params { return &m.p }

func (m *qwen3) Specs() []Spec {
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
			Spec{Name: at("attn_q_norm.weight"), Shape: []int{p.HeadDim}, Use: Vector},
			Spec{Name: at("attn_k_norm.weight"), Shape: []int{p.HeadDim}, Use: Vector},
			Spec{Name: at("attn_output.weight"), Shape: []int{q, p.Dim}, Rule: HeadColumns},
			Spec{Name: at("ffn_norm.weight"), Shape: []int{p.Dim}, Use: Vector},
			Spec{Name: at("ffn_gate.weight"), Shape: []int{p.Dim, p.FFN}, Rule: FFNRows, Join: at("gate and up")},
			Spec{Name: at("ffn_up.weight"), Shape: []int{p.Dim, p.FFN}, Rule: FFNRows, Join: at("gate and up")},
			Spec{Name: at("ffn_down.weight"), Shape: []int{p.FFN, p.Dim}, Rule: FFNColumns},
		)
	}
	return specs
}

func (m *qwen3) Build(b *Builder) {
	x := b.Embed("token_embd.weight", 1)
	for i := range b.Layers() {
		at := block(i)
		h := b.RMSNorm(x, at("attn_norm.weight"))
		q, k, v := b.MulQKV(at, h)
		q = b.RMSNorm(b.Heads(q), at("attn_q_norm.weight"))
		k = b.RMSNorm(b.Heads(k), at("attn_k_norm.weight"))
		b.StoreKV(i, b.Rope(k, m.p.Rope), v)
		a := b.Attention(i, b.Rope(q, m.p.Rope), Attend{})
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
