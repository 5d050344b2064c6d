package ggml

// #include "api.h"
import "C"

import "math"

// Operations that mixtures of experts and latent attention need.

// MulMatID multiplies, for each of n tokens, matrices chosen out of experts
// [k, m, experts]: x is [k, 1 or used, n], ids I32 [used, n], the result
// [m, used, n] F32.
func (c *Context) MulMatID(experts, x, ids Tensor) Tensor {
	return Tensor{C.ggml_mul_mat_id(c.c, experts.t, x.t, ids.t)}
}

// AddID adds to x [m, used, n] the rows of b [m, experts] that ids names.
func (c *Context) AddID(x, b, ids Tensor) Tensor {
	return Tensor{C.ggml_add_id(c.c, x.t, b.t, ids.t)}
}

// SoftMax returns the softmax of each row.
func (c *Context) SoftMax(a Tensor) Tensor { return Tensor{C.ggml_soft_max(c.c, a.t)} }

// Sigmoid returns 1 / (1 + exp(-a)).
func (c *Context) Sigmoid(a Tensor) Tensor { return Tensor{C.ggml_sigmoid(c.c, a.t)} }

// TopK returns the indices (I32) of the k largest values of each row, the
// largest first. It is a view of the whole order, so not contiguous.
func (c *Context) TopK(a Tensor, k int) Tensor {
	return Tensor{C.ggml_argsort_top_k(c.c, a.t, C.int(k))}
}

// SumRows sums each row to one value.
func (c *Context) SumRows(a Tensor) Tensor { return Tensor{C.ggml_sum_rows(c.c, a.t)} }

// Div returns the elementwise quotient; b is repeated over a's shape.
func (c *Context) Div(a, b Tensor) Tensor { return Tensor{C.ggml_div(c.c, a.t, b.t)} }

// AtLeast returns the larger of a and least.
func (c *Context) AtLeast(a Tensor, least float32) Tensor {
	return Tensor{C.ggml_clamp(c.c, a.t, C.float(least), C.float(math.Inf(1)))}
}

// Fill returns a tensor of a's shape that is x everywhere.
func (c *Context) Fill(a Tensor, x float32) Tensor { return Tensor{C.ggml_fill(c.c, a.t, C.float(x))} }

// SwiGLUClamped returns min(gate, limit) * sigmoid(alpha * gate) * (up + 1) with
// up clamped to ±limit: gpt-oss's activation.
func (c *Context) SwiGLUClamped(gate, up Tensor, alpha, limit float32) Tensor {
	return Tensor{C.ggml_swiglu_oai(c.c, gate.t, up.t, C.float(alpha), C.float(limit))}
}

// Contiguous2D copies a into another shape.
func (c *Context) Contiguous2D(a Tensor, ne0, ne1 int) Tensor {
	return Tensor{C.ggml_cont_2d(c.c, a.t, C.int64_t(ne0), C.int64_t(ne1))}
}

// Repeat3D repeats a up to the shape.
func (c *Context) Repeat3D(a Tensor, ne0, ne1, ne2 int) Tensor {
	return Tensor{C.ggml_repeat_4d(c.c, a.t, C.int64_t(ne0), C.int64_t(ne1), C.int64_t(ne2), 1)}
}

// Reshape4D gives contiguous a another shape.
func (c *Context) Reshape4D(a Tensor, ne0, ne1, ne2, ne3 int) Tensor {
	return Tensor{C.ggml_reshape_4d(c.c, a.t, C.int64_t(ne0), C.int64_t(ne1), C.int64_t(ne2), C.int64_t(ne3))}
}
