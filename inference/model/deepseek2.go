package model

import (
	"math"

	"daisy/inference/ggml"
	"daisy/inference/gguf"
)

// deepSeek2 is the architecture of DeepSeek V2, V3 and R1 and of Kimi K2:
// multi-head latent attention, then a dense feed-forward block in the leading
// layers and routed plus shared experts in the others.
//
// Keys and values of all heads are linear in one narrow latent vector per token.
// Files have the matrices that expand it in one of two layouts, and each has the
// cache that it allows:
//   - attn_k_b and attn_v_b apart (converted since April 2025): the key matrix is
//     transposed, so that it maps queries into the latent space ("absorbed").
//     The cache holds the latent vector and the rotated part of the key, which all
//     heads share: 576 values a position and layer in DeepSeek V3, where expanded
//     heads take 40,960. Heads are cut over ranks, the cache is on every rank.
//   - attn_kv_b (older): the latent is expanded when it is stored, and both heads
//     and cache are cut over ranks. Converting the model anew makes the cache small.
type deepSeek2 struct {
	p         Params
	e         experts
	tied      bool
	absorbed  bool
	qLatent   int // width of the latent that queries are expanded from; 0: none
	kvLatent  int
	keyDim    int // width of a head's key: part without position, then rotated part
	dense     int // leading layers without experts
	denseFFN  int // feed-forward columns of those
	sharedFFN int // feed-forward columns of the shared experts together; 0: none
}

func newDeepSeek2(f *gguf.File) (Arch, error) {
	k := keys{f: f, arch: "deepseek2"}
	m := &deepSeek2{
		p: Params{
			Name:       k.arch,
			Layers:     k.count("block_count", maxLayers),
			Dim:        k.count("embedding_length", maxDim),
			Heads:      k.count("attention.head_count", maxDim),
			TrainedCtx: k.count("context_length", 1<<30),
			Eps:        k.positive("attention.layer_norm_rms_epsilon", 1e-6),
			Vocab:      k.vocab(),
		},
		e:        k.experts(),
		tied:     !k.has("output.weight"),
		absorbed: k.has("blk.0.attn_k_b.weight"),
		qLatent:  k.optional("attention.q_lora_rank", maxDim),
		kvLatent: k.count("attention.kv_lora_rank", maxDim),
		dense:    k.optional("leading_dense_block_count", maxLayers),
		denseFFN: k.count("feed_forward_length", maxDim),
	}
	p := &m.p
	// In absorbed files, key_length and value_length describe the cache.
	if m.absorbed {
		m.keyDim, p.ValueDim = k.count("attention.key_length_mla", maxDim), k.count("attention.value_length_mla", maxDim)
	} else {
		m.keyDim, p.ValueDim = k.count("attention.key_length", maxDim), k.count("attention.value_length", maxDim)
	}
	p.Rope = k.rope(k.count("rope.dimension_count", maxDim), p.TrainedCtx)
	if k.err == nil && p.Rope.Dims >= m.keyDim {
		k.fail("deepseek2: keys of %d are all rotated (%d): %w", m.keyDim, p.Rope.Dims, ErrUnsupported)
	}
	k.groupsOf(&m.e)
	m.e.gating = max(gatingSoftmax, gating(k.optional("expert_gating_func", int(gatingSigmoid))))
	m.e.normalise = k.flag("expert_weights_norm", false)
	m.sharedFFN = k.optional("expert_shared_count", maxExperts) * m.e.columns
	if m.dense > p.Layers {
		k.fail("deepseek2: %d of %d layers are dense", m.dense, p.Layers)
	}
	if k.err != nil {
		return nil, k.err
	}
	p.KVHeads, p.HeadDim, p.ExpertsUsed = p.Heads, m.keyDim, m.e.used
	if m.absorbed {
		p.Latent = m.kvLatent
	}
	p.FFN = min(m.e.columns, m.denseFFN)
	p.AttentionScale = float32(1 / math.Sqrt(float64(m.keyDim)))
	m.scaleYaRN(&k)
	return m, k.err
}

// scaleYaRN moves YaRN's magnitude from the rotated part of queries and keys,
// where ggml puts it, to the scale of all scores: that is what these models'
// mscale_all_dim asks for. (mscale itself, which no file has, equals it in all of
// them.)
func (m *deepSeek2) scaleYaRN(k *keys) {
	mscale := 10 * k.float("rope.scaling.yarn_log_multiplier", 0) // files have a tenth of it
	if m.p.Rope.ExtFactor == 0 || mscale == 0 {
		return
	}
	log := math.Log(1 / float64(m.p.Rope.FreqScale))
	m.p.Rope.AttnFactor /= float32(1 + 0.1*log)
	s := 1 + 0.1*float64(mscale)*log
	m.p.AttentionScale *= float32(s * s)
}

func (m *deepSeek2) Params() *Params { return &m.p }

func (m *deepSeek2) Specs() []Spec {
	p := &m.p
	plain := m.keyDim - p.Rope.Dims // part of a key that has no position
	specs := []Spec{
		{Name: "token_embd.weight", Shape: []int{p.Dim, p.Vocab}, Rule: VocabRows, Use: Lookup},
		{Name: "output_norm.weight", Shape: []int{p.Dim}, Use: Vector},
		{Name: "output.weight", Shape: []int{p.Dim, p.Vocab}, Rule: VocabRows, Optional: true},
	}
	for i := range p.Layers {
		at := block(i)
		specs = append(specs,
			Spec{Name: at("attn_norm.weight"), Shape: []int{p.Dim}, Use: Vector},
			Spec{Name: at("attn_kv_a_mqa.weight"), Shape: []int{p.Dim, m.kvLatent + p.Rope.Dims}},
			Spec{Name: at("attn_kv_a_norm.weight"), Shape: []int{m.kvLatent}, Use: Vector},
			Spec{Name: at("attn_output.weight"), Shape: []int{p.Heads * p.ValueDim, p.Dim}, Rule: HeadColumns},
			Spec{Name: at("ffn_norm.weight"), Shape: []int{p.Dim}, Use: Vector},
		)
		if m.qLatent > 0 {
			specs = append(specs,
				Spec{Name: at("attn_q_a.weight"), Shape: []int{p.Dim, m.qLatent}},
				Spec{Name: at("attn_q_a_norm.weight"), Shape: []int{m.qLatent}, Use: Vector},
				Spec{Name: at("attn_q_b.weight"), Shape: []int{m.qLatent, p.Heads * m.keyDim}, Rule: HeadRows},
			)
		} else {
			specs = append(specs, Spec{Name: at("attn_q.weight"), Shape: []int{p.Dim, p.Heads * m.keyDim}, Rule: HeadRows})
		}
		if m.absorbed {
			specs = append(specs,
				Spec{Name: at("attn_k_b.weight"), Shape: []int{plain, m.kvLatent, p.Heads}, Rule: HeadStack, Use: Stack},
				Spec{Name: at("attn_v_b.weight"), Shape: []int{m.kvLatent, p.ValueDim, p.Heads}, Rule: HeadStack, Use: Stack},
			)
		} else {
			specs = append(specs, Spec{Name: at("attn_kv_b.weight"), Shape: []int{m.kvLatent, p.Heads * (plain + p.ValueDim)}, Rule: HeadRows})
		}
		if i < m.dense {
			specs = append(specs, m.feedForwardSpecs(at, "", m.denseFFN)...)
			continue
		}
		specs = append(specs, m.e.specs(at, p.Dim)...)
		specs = append(specs, Spec{Name: at("exp_probs_b.bias"), Shape: []int{m.e.count}, Use: Vector, Optional: true})
		if m.sharedFFN > 0 {
			specs = append(specs, m.feedForwardSpecs(at, "_shexp", m.sharedFFN)...)
		}
	}
	return specs
}

func (m *deepSeek2) feedForwardSpecs(at func(string) string, kind string, columns int) []Spec {
	return []Spec{
		{Name: at("ffn_gate" + kind + ".weight"), Shape: []int{m.p.Dim, columns}, Rule: FFNRows},
		{Name: at("ffn_up" + kind + ".weight"), Shape: []int{m.p.Dim, columns}, Rule: FFNRows},
		{Name: at("ffn_down" + kind + ".weight"), Shape: []int{columns, m.p.Dim}, Rule: FFNColumns},
	}
}

func (m *deepSeek2) Build(b *Builder) {
	x := b.Embed("token_embd.weight", 1)
	for i := range b.Layers() {
		at := block(i)
		a := m.attention(b, i, at, b.RMSNorm(x, at("attn_norm.weight")))
		if i == m.p.Layers-1 {
			if b.Outputs() == 0 {
				return // only the KV cache was wanted
			}
			a, x = b.SelectOutputs(a), b.SelectOutputs(x)
		}
		x = b.SumRanks(x, b.MulMat(at("attn_output.weight"), a))
		h := b.RMSNorm(x, at("ffn_norm.weight"))
		switch {
		case i < m.dense:
			h = m.feedForward(b, at, "", h)
		case m.sharedFFN > 0:
			h = b.c.AddTo(b.Experts(&m.e, at, h), m.feedForward(b, at, "_shexp", h))
		default:
			h = b.Experts(&m.e, at, h)
		}
		x = b.SumRanks(x, h)
	}
	if b.HandOn(x) {
		return
	}
	b.Logits(b.MulMat(head(m.tied), b.RMSNorm(x, "output_norm.weight")))
}

func (m *deepSeek2) feedForward(b *Builder, at func(string) string, kind string, x ggml.Tensor) ggml.Tensor {
	gate, up := b.MulMat(at("ffn_gate"+kind+".weight"), x), b.MulMat(at("ffn_up"+kind+".weight"), x)
	return b.MulMat(at("ffn_down"+kind+".weight"), b.SwiGLU(gate, up))
}

// attention returns [heads * value width, n] before the output matrix.
func (m *deepSeek2) attention(b *Builder, layer int, at func(string) string, x ggml.Tensor) ggml.Tensor {
	c, n, heads := b.c, b.n, b.shard.Heads.Len()
	rotated := m.p.Rope.Dims
	plain := m.keyDim - rotated

	q := x
	if m.qLatent > 0 {
		q = b.MulMat(at("attn_q_b.weight"), b.RMSNorm(b.MulMat(at("attn_q_a.weight"), x), at("attn_q_a_norm.weight")))
	} else {
		q = b.MulMat(at("attn_q.weight"), x)
	}
	head := m.keyDim * f32Bytes
	qPlain := c.View3D(q, plain, heads, n, head, head*heads, 0)
	qRotated := b.Rope(c.View3D(q, rotated, heads, n, head, head*heads, plain*f32Bytes), m.p.Rope)

	kv := b.MulMat(at("attn_kv_a_mqa.weight"), x) // [latent, then rotated key; n]
	row := (m.kvLatent + rotated) * f32Bytes
	latent := b.RMSNorm(c.View2D(kv, m.kvLatent, n, row, 0), at("attn_kv_a_norm.weight"))
	kRotated := b.Rope(c.View3D(kv, rotated, 1, n, row, row, m.kvLatent*f32Bytes), m.p.Rope)

	if m.absorbed {
		k := c.Concat(latent, c.Reshape2D(kRotated, rotated, n), 0)
		b.StoreKV(layer, k, ggml.Tensor{})
		swap := [4]int{0, 2, 1, 3} // heads and tokens
		q = c.Permute(c.MulMat(b.Weight(at("attn_k_b.weight")), c.Permute(qPlain, swap)), swap)
		a := b.Attention(layer, c.Concat(q, qRotated, 0), Attend{}) // in the latent space
		a = c.Permute(c.Reshape3D(a, m.kvLatent, heads, n), swap)
		a = c.MulMat(b.Weight(at("attn_v_b.weight")), a)
		return c.Contiguous2D(c.Permute(a, swap), heads*m.p.ValueDim, n)
	}

	kv = b.MulMat(at("attn_kv_b.weight"), latent) // per head: key without position, value
	both := (plain + m.p.ValueDim) * f32Bytes
	kPlain := c.View3D(kv, plain, heads, n, both, both*heads, 0)
	v := c.View3D(kv, m.p.ValueDim, heads, n, both, both*heads, plain*f32Bytes)
	k := c.Concat(kPlain, c.Repeat3D(kRotated, rotated, heads, n), 0)
	b.StoreKV(layer, k, c.Contiguous2D(v, heads*m.p.ValueDim, n))
	return b.Attention(layer, c.Concat(qPlain, qRotated, 0), Attend{})
}
