package model

import "daisy/inference/gguf"

// phi3 is the architecture of Phi-3, Phi-3.5 and Phi-4: llama's layers with fused
// matrices (Q, K and V; gate and up), where all attention may be windowed, and only
// a part of each head may rotate. LongRoPE has two sets of frequencies: one for
// contexts up to the original length, one beyond.
type phi3 struct {
	p    Params
	tied bool // no output matrix: the embedding's serves
}

func newPhi3(f *gguf.File) (Arch, error) {
	k := keys{f: f, arch: "phi3"}
	k.noExperts()
	m := &phi3{p: k.params(), tied: !k.has("output.weight")}
	m.p.Rope.NeoX = true
	m.p.Window = k.window()
	if k.has("rope_factors_long.weight") != k.has("rope_factors_short.weight") {
		k.fail("phi3 with one of two sets of LongRoPE factors")
	}
	return m, k.err
}

func (m *phi3) Params() *Params { return &m.p }

func (m *phi3) Specs() []Spec {
	p := &m.p
	q, kv := p.Heads*p.HeadDim, p.KVHeads*p.HeadDim
	specs := []Spec{
		{Name: "token_embd.weight", Shape: []int{p.Dim, p.Vocab}, Rule: VocabRows, Use: Lookup},
		{Name: "output_norm.weight", Shape: []int{p.Dim}, Use: Vector},
		{Name: "output.weight", Shape: []int{p.Dim, p.Vocab}, Rule: VocabRows, Optional: true},
		{Name: "rope_factors_long.weight", Shape: []int{p.Rope.Dims / 2}, Use: Vector, Optional: true},
		{Name: "rope_factors_short.weight", Shape: []int{p.Rope.Dims / 2}, Use: Vector, Optional: true},
	}
	for i := range p.Layers {
		at := block(i)
		specs = append(specs,
			Spec{Name: at("attn_norm.weight"), Shape: []int{p.Dim}, Use: Vector},
			Spec{Name: at("attn_qkv.weight"), Shape: []int{p.Dim, q + 2*kv}, Rule: QKVRows},
			Spec{Name: at("attn_output.weight"), Shape: []int{q, p.Dim}, Rule: HeadColumns},
			Spec{Name: at("ffn_norm.weight"), Shape: []int{p.Dim}, Use: Vector},
			Spec{Name: at("ffn_up.weight"), Shape: []int{p.Dim, 2 * p.FFN}, Rule: GateUpRows},
			Spec{Name: at("ffn_down.weight"), Shape: []int{p.FFN, p.Dim}, Rule: FFNColumns},
		)
	}
	return specs
}

func (m *phi3) Build(b *Builder) {
	rope := m.p.Rope
	rope.FreqFactors = b.Weight("rope_factors_short.weight")
	if b.Context() > rope.TrainedCtx {
		rope.FreqFactors = b.Weight("rope_factors_long.weight")
	}
	x := b.Embed("token_embd.weight", 1)
	for i := range b.Layers() {
		at := block(i)
		h := b.RMSNorm(x, at("attn_norm.weight"))
		q, k, v := b.QKV(b.MulMat(at("attn_qkv.weight"), h))
		b.StoreKV(i, b.Rope(k, rope), v)
		a := b.Attention(i, b.Rope(q, rope), Attend{Windowed: m.p.Window > 0})
		if i == m.p.Layers-1 {
			if b.Outputs() == 0 {
				return // only the KV cache was wanted
			}
			a, x = b.SelectOutputs(a), b.SelectOutputs(x)
		}
		x = b.SumRanks(x, b.MulMat(at("attn_output.weight"), a))
		h = b.MulMat(at("ffn_up.weight"), b.RMSNorm(x, at("ffn_norm.weight")))
		x = b.SumRanks(x, b.MulMat(at("ffn_down.weight"), b.SwiGLU(b.GateUp(h))))
	}
	if b.HandOn(x) {
		return
	}
	b.Logits(b.MulMat(head(m.tied), b.RMSNorm(x, "output_norm.weight")))
}
