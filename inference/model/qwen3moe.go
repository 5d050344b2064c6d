package model

import "daisy/inference/gguf"

// qwen3moe is the architecture of Qwen3's mixtures of experts (30B-A3B,
// 235B-A22B, Qwen3-Coder): attention with normalised queries and keys, then
// routed experts, each added to the residual stream.
type qwen3moe struct {
	p    Params
	e    experts
	tied bool
}

func newQwen3MoE(f *gguf.File) (Arch, error) {
	k := keys{f: f, arch: "qwen3moe"}
	m := &qwen3moe{p: k.params(), e: k.experts(), tied: !k.has("output.weight")}
	m.e.gating = gatingSoftmax
	m.e.normalise = k.flag("expert_weights_norm", true) // older files do not say so
	m.p.FFN, m.p.ExpertsUsed = m.e.columns, m.e.used
	m.p.Rope.NeoX = true
	return m, k.err
}

func (m *qwen3moe) Params() *Params { return &m.p }

func (m *qwen3moe) Specs() []Spec {
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
		)
		specs = append(specs, m.e.specs(at, p.Dim)...)
	}
	return specs
}

func (m *qwen3moe) Build(b *Builder) {
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
		x = b.SumRanks(x, b.Experts(&m.e, at, b.RMSNorm(x, at("ffn_norm.weight"))))
	}
	if b.HandOn(x) {
		return
	}
	b.Logits(b.MulMat(head(m.tied), b.RMSNorm(x, "output_norm.weight")))
}
