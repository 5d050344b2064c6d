package model

import (
	"math"

	"daisy/inference/ggml"
	"daisy/inference/gguf"
)

// gemma3 is the architecture of Gemma 3: norms before and after attention and
// feed-forward, normalised queries and keys, GELU, and five layers with a short
// window and short-range frequencies for each one that sees everything.
type gemma3 struct {
	p       Params
	tied    bool      // no output matrix: the embedding's serves
	local   ggml.Rope // of windowed layers
	period  int       // every period-th layer sees everything
	softCap float32   // of the logits; 0 = off
}

// gemma3Large is the layer count of the 27B model, whose scores are scaled by
// another width. No key of the file says so.
const gemma3Large = 62

func newGemma3(f *gguf.File) (Arch, error) {
	k := keys{f: f, arch: "gemma3"}
	k.noExperts()
	m := &gemma3{p: k.params(), tied: !k.has("output.weight"), softCap: k.float("final_logit_softcapping", 0)}
	m.p.Rope.NeoX = true
	m.p.Window = k.window()
	m.period = k.countOr("attention.sliding_window_pattern", 6, maxLayers)
	if m.softCap < 0 {
		k.fail("gemma3.final_logit_softcapping = %v is negative", m.softCap)
	}
	m.local = m.p.Rope
	m.local.FreqBase = k.positive("rope.freq_base_swa", 10000)
	m.local.FreqScale, m.local.ExtFactor, m.local.AttnFactor = 1, 0, 1 // only the others are scaled
	if m.p.Layers == gemma3Large {
		m.p.AttentionScale = float32(1 / math.Sqrt(float64(m.p.Dim)/float64(m.p.Heads)))
	}
	return m, k.err
}

func (m *gemma3) Params() *Params { return &m.p }

func (m *gemma3) Specs() []Spec {
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
			Spec{Name: at("post_attention_norm.weight"), Shape: []int{p.Dim}, Use: Vector},
			Spec{Name: at("ffn_norm.weight"), Shape: []int{p.Dim}, Use: Vector},
			Spec{Name: at("ffn_gate.weight"), Shape: []int{p.Dim, p.FFN}, Rule: FFNRows, Join: at("gate and up")},
			Spec{Name: at("ffn_up.weight"), Shape: []int{p.Dim, p.FFN}, Rule: FFNRows, Join: at("gate and up")},
			Spec{Name: at("ffn_down.weight"), Shape: []int{p.FFN, p.Dim}, Rule: FFNColumns},
			Spec{Name: at("post_ffw_norm.weight"), Shape: []int{p.Dim}, Use: Vector},
		)
	}
	return specs
}

func (m *gemma3) Build(b *Builder) {
	x := b.Keep(b.Embed("token_embd.weight", float32(math.Sqrt(float64(m.p.Dim)))))
	for i := range b.Layers() {
		at := block(i)
		rope, how := m.p.Rope, Attend{Windowed: m.p.Window > 0 && (i+1)%m.period != 0}
		if how.Windowed {
			rope = m.local
		}
		h := b.RMSNorm(x, at("attn_norm.weight"))
		q, k, v := b.MulQKV(at, h)
		q = b.RMSNorm(b.Heads(q), at("attn_q_norm.weight"))
		k = b.RMSNorm(b.Heads(k), at("attn_k_norm.weight"))
		b.StoreKV(i, b.Rope(k, rope), v)
		a := b.Attention(i, b.Rope(q, rope), how)
		if i == m.p.Layers-1 {
			if b.Outputs() == 0 {
				return // only the KV cache was wanted
			}
			a, x = b.SelectOutputs(a), b.Keep(b.SelectOutputs(x))
		}
		// The sums are normalised before they join the residual stream.
		h = b.RMSNorm(b.Sum(b.MulMat(at("attn_output.weight"), a)), at("post_attention_norm.weight"))
		x = b.Keep(b.Add(h, x))
		h = b.RMSNorm(x, at("ffn_norm.weight"))
		h = b.GeGLU(b.MulGateUp(at, h))
		h = b.RMSNorm(b.Sum(b.MulMat(at("ffn_down.weight"), h)), at("post_ffw_norm.weight"))
		x = b.Keep(b.Add(h, x))
	}
	if b.HandOn(x) {
		return
	}
	b.Logits(b.SoftCap(b.MulMat(head(m.tied), b.RMSNorm(x, "output_norm.weight")), m.softCap))
}
