package ggml

// #include <stdlib.h>
// #include "api.h"
// #include "attention.h"
import "C"

import "unsafe"

// MaxHead is the widest head that TiledAttention takes.
const MaxHead = C.DAISY_MAX_HEAD

// Heads tells where values of heads [width, N] lie for a number of heads and of
// sequences: strides in bytes from one of them to the next.
type Heads struct {
	Tensor      Tensor
	Width       int
	Next        int // from one token or position to the next
	Head, Batch int
}

// TiledAttention computes softmax(k^T q scale + mask) v on the CPU, for prefill:
// tokens queries of each of batches sequences see up to positions keys. q is F32
// with heads heads; k and v are F16 with kvHeads heads, each serving heads/kvHeads
// of q's; widths are multiples of 8 up to MaxHead. mask [positions, tokens] of each
// sequence is F16 and shows each token one range of positions: 0 there, -Inf
// elsewhere. The result is F32 [value width, heads, tokens, batches].
func (c *Context) TiledAttention(q, k, v, mask Heads, heads, kvHeads, tokens, positions, batches int, scale float32) Tensor {
	p := C.malloc(C.sizeof_struct_daisy_attention)
	c.held = append(c.held, p)
	*(*C.struct_daisy_attention)(p) = C.struct_daisy_attention{
		q: q.Tensor.t, k: k.Tensor.t, v: v.Tensor.t, mask: mask.Tensor.t,
		width: C.int(k.Width), value_width: C.int(v.Width), tokens: C.int(tokens), positions: C.int(positions),
		heads: C.int(heads), kv_heads: C.int(kvHeads), batches: C.int(batches), scale: C.float(scale),
		q_token: C.size_t(q.Next), q_head: C.size_t(q.Head), q_batch: C.size_t(q.Batch),
		k_position: C.size_t(k.Next), k_head: C.size_t(k.Head), k_batch: C.size_t(k.Batch),
		v_position: C.size_t(v.Next), v_head: C.size_t(v.Head), v_batch: C.size_t(v.Batch),
		mask_token: C.size_t(mask.Next), mask_batch: C.size_t(mask.Batch),
	}
	args := [4]*C.struct_ggml_tensor{q.Tensor.t, k.Tensor.t, v.Tensor.t, mask.Tensor.t}
	return Tensor{C.ggml_custom_4d(c.c, uint32(F32), C.int64_t(v.Width), C.int64_t(heads), C.int64_t(tokens),
		C.int64_t(batches), &args[0], C.int(len(args)), C.ggml_custom_op_t(C.daisy_attention), -1, unsafe.Pointer(p))}
}
