package model

import "daisy/inference/ggml"

// rope reads the rotary embedding's parameters. Scaling is none, linear, or YaRN
// (arXiv 2309.00071); that of Llama 3 and LongRoPE (arXiv 2402.13753) comes as
// tensors, which the architectures that know them give to FreqFactors.
func (k *keys) rope(headDim, trainedCtx int) ggml.Rope {
	r := ggml.Rope{
		Dims:       k.countOr("rope.dimension_count", headDim, headDim),
		TrainedCtx: k.countOr("rope.scaling.original_context_length", trainedCtx, 1<<30),
		FreqBase:   k.float("rope.freq_base", 10000),
		FreqScale:  1,
		AttnFactor: 1,
		BetaFast:   32,
		BetaSlow:   1,
	}
	if r.FreqBase <= 0 {
		k.fail("%s.rope.freq_base = %v is not positive", k.arch, r.FreqBase)
	}
	if r.Dims%2 != 0 {
		k.fail("%s.rope.dimension_count = %d is odd", k.arch, r.Dims)
	}
	factor := k.float("rope.scaling.factor", 0)
	if factor == 0 {
		factor = k.float("rope.scale_linear", 1) // older files
	}
	if factor <= 0 {
		k.fail("%s.rope.scaling.factor = %v is not positive", k.arch, factor)
		factor = 1
	}
	kind := k.text("rope.scaling.type", "linear")
	if k.has("rope_factors_long.weight") {
		kind = "longrope" // files do not always say so
	}
	switch kind {
	case "none", "llama3":
	case "linear":
		r.FreqScale = 1 / factor
	case "yarn":
		r.FreqScale = 1 / factor
		r.ExtFactor = 1
		r.AttnFactor = k.float("rope.scaling.attn_factor", 1)
		r.BetaFast = k.float("rope.scaling.yarn_beta_fast", 32)
		r.BetaSlow = k.float("rope.scaling.yarn_beta_slow", 1)
	case "longrope":
		if !k.has("rope_factors_long.weight") {
			k.fail("%s: LongRoPE without its tensors: %w", k.arch, ErrUnsupported)
		}
		r.AttnFactor = k.float("rope.scaling.attn_factor", 1)
	default:
		k.fail("%s.rope.scaling.type %q: %w", k.arch, kind, ErrUnsupported)
	}
	return r
}
