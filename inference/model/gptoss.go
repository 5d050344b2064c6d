package model

import (
	"math"

	"daisy/inference/ggml"
	"daisy/inference/gguf"
)

// gptOSS is the architecture of gpt-oss (20b, 120b): attention with sinks, in every
// other layer over a window only, then routed experts with biases and a clamped
// activation. All projections have biases.
type gptOSS struct {
	p Params
	e experts
}

// yarnFactors is the constant that gpt-oss's rotary embedding needs.
const yarnFactors = "rope_yarn_factors"

func newGPTOSS(f *gguf.File) (Arch, error) {
	k := keys{f: f, arch: "gpt-oss"}
	m := &gptOSS{p: k.params(), e: k.experts()}
	m.e.gating = gatingChosen
	m.e.clamped = true
	m.p.FFN, m.p.ExpertsUsed = m.e.columns, m.e.used
	m.p.Window = k.count("attention.sliding_window", 1<<30)
	m.p.Rope.NeoX = true
	if m.p.Rope.ExtFactor != 0 && k.err == nil {
		// gpt-oss was trained with YaRN's range of frequencies as computed, where ggml
		// rounds its ends to whole dimensions.
		m.p.Constants = map[string][]float32{yarnFactors: unroundedYaRN(&m.p.Rope)}
	}
	return m, k.err
}

// unroundedYaRN turns r's YaRN parameters into divisors of the frequencies, and r
// into a plain rotation by those: slow dimensions are divided by the scaling
// factor, fast ones not at all, and those between by a mix.
func unroundedYaRN(r *ggml.Rope) []float32 {
	factor := 1 / float64(r.FreqScale)
	// The dimension whose wave turns so many times within the trained context.
	dim := func(turns float32) float64 {
		return float64(r.Dims) * math.Log(float64(r.TrainedCtx)/(float64(turns)*2*math.Pi)) / (2 * math.Log(float64(r.FreqBase)))
	}
	low, high := max(dim(r.BetaFast), 0), min(dim(r.BetaSlow), float64(r.Dims-1))
	divisors := make([]float32, r.Dims/2)
	for i := range divisors {
		slow := min(max((float64(i)-low)/max(high-low, 0.001), 0), 1)
		divisors[i] = float32(1 / (slow/factor + 1 - slow))
	}
	r.AttnFactor *= float32(1 + 0.1*math.Log(factor))
	r.FreqScale, r.ExtFactor = 1, 0
	return divisors
}

func (m *gptOSS) Params() *Params { return &m.p }

func (m *gptOSS) Specs() []Spec {
	p := &m.p
	q, kv := p.Heads*p.HeadDim, p.KVHeads*p.HeadDim
	specs := []Spec{
		{Name: "token_embd.weight", Shape: []int{p.Dim, p.Vocab}, Rule: VocabRows, Use: Lookup},
		{Name: "output_norm.weight", Shape: []int{p.Dim}, Use: Vector},
		{Name: "output.weight", Shape: []int{p.Dim, p.Vocab}, Rule: VocabRows},
	}
	for i := range p.Layers {
		at := block(i)
		specs = append(specs,
			Spec{Name: at("attn_norm.weight"), Shape: []int{p.Dim}, Use: Vector},
			Spec{Name: at("attn_q.weight"), Shape: []int{p.Dim, q}, Rule: HeadRows, Join: at("qkv")},
			Spec{Name: at("attn_q.bias"), Shape: []int{q}, Rule: HeadRows, Use: Vector},
			Spec{Name: at("attn_k.weight"), Shape: []int{p.Dim, kv}, Rule: KVHeadRows, Join: at("qkv")},
			Spec{Name: at("attn_k.bias"), Shape: []int{kv}, Rule: KVHeadRows, Use: Vector},
			Spec{Name: at("attn_v.weight"), Shape: []int{p.Dim, kv}, Rule: KVHeadRows, Join: at("qkv")},
			Spec{Name: at("attn_v.bias"), Shape: []int{kv}, Rule: KVHeadRows, Use: Vector},
			Spec{Name: at("attn_sinks.weight"), Shape: []int{p.Heads}, Rule: Heads, Use: Vector},
			Spec{Name: at("attn_output.weight"), Shape: []int{q, p.Dim}, Rule: HeadColumns},
			Spec{Name: at("attn_output.bias"), Shape: []int{p.Dim}, Use: Vector},
			Spec{Name: at("post_attention_norm.weight"), Shape: []int{p.Dim}, Use: Vector},
		)
		specs = append(specs, m.e.specs(at, p.Dim)...)
		specs = append(specs, m.e.biases(at, p.Dim)...)
	}
	return specs
}

func (m *gptOSS) Build(b *Builder) {
	rope := m.p.Rope
	rope.FreqFactors = b.Weight(yarnFactors)
	x := b.Embed("token_embd.weight", 1)
	for i := range b.Layers() {
		at := block(i)
		h := b.RMSNorm(x, at("attn_norm.weight"))
		q, k, v := b.MulQKV(at, h)
		q = b.AddBias(q, at("attn_q.bias"))
		k = b.AddBias(k, at("attn_k.bias"))
		v = b.AddBias(v, at("attn_v.bias"))
		b.StoreKV(i, b.Rope(b.Heads(k), rope), v)
		a := b.Attention(i, b.Rope(b.Heads(q), rope), Attend{Windowed: i%2 == 0, Sinks: b.Weight(at("attn_sinks.weight"))})
		if i == m.p.Layers-1 {
			if b.Outputs() == 0 {
				return // only the KV cache was wanted
			}
			a, x = b.SelectOutputs(a), b.SelectOutputs(x)
		}
		x = b.SumRanks(x, b.AddBiasOnce(b.MulMat(at("attn_output.weight"), a), at("attn_output.bias")))
		x = b.SumRanks(x, b.Experts(&m.e, at, b.RMSNorm(x, at("post_attention_norm.weight"))))
	}
	if b.HandOn(x) {
		return
	}
	b.Logits(b.MulMat("output.weight", b.RMSNorm(x, "output_norm.weight")))
}
