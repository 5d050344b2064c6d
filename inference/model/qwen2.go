package model

import "daisy/inference/gguf"

// qwen2 is the architecture of Qwen 1.5, 2 and 2.5 and of what was distilled into
// them: llama's, with biases on queries, keys and values.
type qwen2 struct {
	p    Params
	tied bool // no output matrix: the embedding's serves
}

func newQwen2(f *gguf.File) (Arch, error) {
	k := keys{f: f, arch: "qwen2"}
	k.noExperts()
	m := &qwen2{p: k.params(), tied: !k.has("output.weight")}
	m.p.Rope.NeoX = true
	return m, k.err
}

func (m *qwen2) Params() *Params { return &m.p }

func (m *qwen2) Specs() []Spec {
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
			Spec{Name: at("attn_q.bias"), Shape: []int{q}, Rule: HeadRows, Use: Vector, Optional: true},
			Spec{Name: at("attn_k.bias"), Shape: []int{kv}, Rule: KVHeadRows, Use: Vector, Optional: true},
			Spec{Name: at("attn_v.bias"), Shape: []int{kv}, Rule: KVHeadRows, Use: Vector, Optional: true},
			Spec{Name: at("attn_output.weight"), Shape: []int{q, p.Dim}, Rule: HeadColumns},
			Spec{Name: at("ffn_norm.weight"), Shape: []int{p.Dim}, Use: Vector},
			Spec{Name: at("ffn_gate.weight"), Shape: []int{p.Dim, p.FFN}, Rule: FFNRows, Join: at("gate and up")},
			Spec{Name: at("ffn_up.weight"), Shape: []int{p.Dim, p.FFN}, Rule: FFNRows, Join: at("gate and up")},
			Spec{Name: at("ffn_down.weight"), Shape: []int{p.FFN, p.Dim}, Rule: FFNColumns},
		)
	}
	return specs
}

func (m *qwen2) Build(b *Builder) {
	x := b.Embed("token_embd.weight", 1)
	for i := range b.Layers() {
		at := block(i)
		h := b.RMSNorm(x, at("attn_norm.weight"))
		q, k, v := b.MulQKV(at, h)
		q = b.AddBias(q, at("attn_q.bias"))
		k = b.AddBias(k, at("attn_k.bias"))
		v = b.AddBias(v, at("attn_v.bias"))
		b.StoreKV(i, b.Rope(b.Heads(k), m.p.Rope), v)
		a := b.Attention(i, b.Rope(b.Heads(q), m.p.Rope), Attend{})
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
