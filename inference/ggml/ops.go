package ggml

// #include "api.h"
import "C"

// Operations append to the context and return the result's tensor. Shapes are in
// ggml order; [a, b] means ne0 = a, ne1 = b.

// AddTo returns a + b; b is repeated over a's shape.
func (c *Context) AddTo(a, b Tensor) Tensor { return Tensor{C.ggml_add(c.c, a.t, b.t)} }

// Mul returns the elementwise product; b is repeated over a's shape.
func (c *Context) Mul(a, b Tensor) Tensor { return Tensor{C.ggml_mul(c.c, a.t, b.t)} }

// Scale returns a times s.
func (c *Context) Scale(a Tensor, s float32) Tensor {
	return Tensor{C.ggml_scale(c.c, a.t, C.float(s))}
}

// MulMat multiplies weights w [k, m] with x [k, n] to [m, n] in F32.
func (c *Context) MulMat(w, x Tensor) Tensor { return Tensor{C.ggml_mul_mat(c.c, w.t, x.t)} }

// RMSNorm normalises each row of x to a root mean square of 1.
func (c *Context) RMSNorm(x Tensor, eps float32) Tensor {
	return Tensor{C.ggml_rms_norm(c.c, x.t, C.float(eps))}
}

// SwiGLU returns silu(gate) * up.
func (c *Context) SwiGLU(gate, up Tensor) Tensor {
	return Tensor{C.ggml_swiglu_split(c.c, gate.t, up.t)}
}

// GeGLU returns gelu(gate) * up, gelu by its tanh approximation.
func (c *Context) GeGLU(gate, up Tensor) Tensor {
	return Tensor{C.ggml_geglu_split(c.c, gate.t, up.t)}
}

// Tanh returns the hyperbolic tangent of each element.
func (c *Context) Tanh(a Tensor) Tensor { return Tensor{C.ggml_tanh(c.c, a.t)} }

// GetRows picks rows of a by the I32 indices in rows, as F32.
func (c *Context) GetRows(a, rows Tensor) Tensor { return Tensor{C.ggml_get_rows(c.c, a.t, rows.t)} }

// SetRows writes the rows of src (F32) into dst (any type) at the indices in
// rows (I64), and returns a view of dst.
func (c *Context) SetRows(dst, src, rows Tensor) Tensor {
	return Tensor{C.ggml_set_rows(c.c, dst.t, src.t, rows.t)}
}

// Concat joins a and b along dimension dim.
func (c *Context) Concat(a, b Tensor, dim int) Tensor {
	return Tensor{C.ggml_concat(c.c, a.t, b.t, C.int(dim))}
}

// Permute reorders dimensions: dimension i of a becomes dimension axes[i].
func (c *Context) Permute(a Tensor, axes [4]int) Tensor {
	return Tensor{C.ggml_permute(c.c, a.t, C.int(axes[0]), C.int(axes[1]), C.int(axes[2]), C.int(axes[3]))}
}

// Reshape2D gives contiguous a another shape.
func (c *Context) Reshape2D(a Tensor, ne0, ne1 int) Tensor {
	return Tensor{C.ggml_reshape_2d(c.c, a.t, C.int64_t(ne0), C.int64_t(ne1))}
}

// Reshape3D gives contiguous a another shape.
func (c *Context) Reshape3D(a Tensor, ne0, ne1, ne2 int) Tensor {
	return Tensor{C.ggml_reshape_3d(c.c, a.t, C.int64_t(ne0), C.int64_t(ne1), C.int64_t(ne2))}
}

// View1D shows n elements of a from its byte off on.
func (c *Context) View1D(a Tensor, n, off int) Tensor {
	return Tensor{C.ggml_view_1d(c.c, a.t, C.int64_t(n), C.size_t(off))}
}

// View2D shows a part of a; nb1 is the stride of rows in bytes.
func (c *Context) View2D(a Tensor, ne0, ne1, nb1, off int) Tensor {
	return Tensor{C.ggml_view_2d(c.c, a.t, C.int64_t(ne0), C.int64_t(ne1), C.size_t(nb1), C.size_t(off))}
}

// View4D shows a part of a of shape ne; nb are the strides in bytes of
// dimensions 1 to 3.
func (c *Context) View4D(a Tensor, ne [4]int, nb [3]int, off int) Tensor {
	return Tensor{C.ggml_view_4d(c.c, a.t, C.int64_t(ne[0]), C.int64_t(ne[1]), C.int64_t(ne[2]), C.int64_t(ne[3]),
		C.size_t(nb[0]), C.size_t(nb[1]), C.size_t(nb[2]), C.size_t(off))}
}

// View3D shows a part of a; nb1 and nb2 are strides in bytes.
func (c *Context) View3D(a Tensor, ne0, ne1, ne2, nb1, nb2, off int) Tensor {
	return Tensor{C.ggml_view_3d(c.c, a.t, C.int64_t(ne0), C.int64_t(ne1), C.int64_t(ne2),
		C.size_t(nb1), C.size_t(nb2), C.size_t(off))}
}

// Rotary position embedding's parameters, by the names of ggml and of the YaRN
// paper (arXiv 2309.00071).
type Rope struct {
	Dims        int  // leading dimensions of a head that rotate
	NeoX        bool // pairs are half a head apart, instead of neighbours
	TrainedCtx  int  // YaRN: context that the model was trained with
	FreqBase    float32
	FreqScale   float32 // 1 / linear scaling factor
	ExtFactor   float32 // YaRN: 1 = on
	AttnFactor  float32
	BetaFast    float32
	BetaSlow    float32
	FreqFactors Tensor // F32 [Dims/2] divisors of the frequencies, or absent
}

// Rope rotates x [head size, heads, tokens] by pos (I32 [tokens]).
func (c *Context) Rope(x, pos Tensor, r Rope) Tensor {
	mode := 0
	if r.NeoX {
		mode = 2
	}
	return Tensor{C.ggml_rope_ext(c.c, x.t, pos.t, r.FreqFactors.t, C.int(r.Dims), C.int(mode),
		C.int(r.TrainedCtx), C.float(r.FreqBase), C.float(r.FreqScale), C.float(r.ExtFactor),
		C.float(r.AttnFactor), C.float(r.BetaFast), C.float(r.BetaSlow))}
}

// FlashAttention computes softmax(q k^T scale + mask) v with
// q [head size, tokens, heads] F32, k and v [head size, positions, KV heads] of
// any type, and mask [positions, tokens] F16 contiguous (0 or -Inf). The result
// is [head size, heads, tokens] F32. Sinks, F32 [heads] or absent, are logits of
// one more position without a value. With softCap, scores s become
// softCap * tanh(s / softCap) before the mask.
func (c *Context) FlashAttention(q, k, v, mask, sinks Tensor, scale, softCap float32) Tensor {
	out := C.ggml_flash_attn_ext(c.c, q.t, k.t, v.t, mask.t, C.float(scale), 0, C.float(softCap))
	if sinks.Valid() {
		C.ggml_flash_attn_ext_add_sinks(out, sinks.t)
	}
	return Tensor{out}
}
