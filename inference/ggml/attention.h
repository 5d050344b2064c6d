// Attention of many queries, for prefill on a CPU. ggml's fused operation goes
// position by position there; this one goes tile by tile, as FlashAttention does
// (Dao, 2023: arXiv 2307.08691).
#pragma once
#include <stddef.h>

struct ggml_tensor;

#define DAISY_MAX_HEAD 256 // widest head

// The operation's shapes, with strides in bytes. Of tensors q (F32), k, v and mask
// (F16) elements of a head, and positions of the mask, follow each other. Widths
// are multiples of 8.
struct daisy_attention {
  struct ggml_tensor *q, *k, *v, *mask;
  int width, value_width, tokens, positions, heads, kv_heads, batches;
  float scale;
  size_t q_token, q_head, q_batch;
  size_t k_position, k_head, k_batch;
  size_t v_position, v_head, v_batch;
  size_t mask_token, mask_batch;
};

// Computes softmax(k^T q * scale + mask) v into dst F32 [value_width, heads, tokens,
// batches], contiguous. userdata is a struct daisy_attention. The mask shows each
// query one range of positions, at least one: 0 there, -Inf elsewhere. Of nth
// threads, this one is ith.
void daisy_attention(struct ggml_tensor *dst, int ith, int nth, void *userdata);
