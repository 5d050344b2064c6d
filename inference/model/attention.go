package model

import "daisy/inference/ggml"

// Attend says how a layer's attention differs from the plain one.
type Attend struct {
	Windowed bool        // a token sees Params.Window positions
	Sinks    ggml.Tensor // F32 [heads of the shard]: logits of a key that has no value
	SoftCap  float32     // scores s become SoftCap * tanh(s / SoftCap); 0 = off
}

// Attention lets the queries q [key width, heads, n] attend to their sequences'
// cached keys and values: [heads * value width, n]. The widths are those of the
// cache.
func (b *Builder) Attention(layer int, q ggml.Tensor, how Attend) ggml.Tensor {
	heads := b.shard.Heads.Len()
	masks := b.mem.Mask
	if how.Windowed {
		masks = b.mem.WindowMask
	}
	key, value, kvHeads := b.p.HeadDim, b.p.valueDim(), b.shard.KVHeads.Len()
	if b.p.Latent > 0 {
		key, value, kvHeads = b.p.Latent+b.p.Rope.Dims, b.p.Latent, 1
	}
	var out ggml.Tensor
	first, mask := 0, 0
	nb1 := key * f32Bytes
	nb2 := nb1 * heads
	for _, r := range bundles(b.runs) {
		qr := b.c.View4D(q, [4]int{key, heads, r.N, r.count}, [3]int{nb1, nb2, nb2 * r.N}, first*nb2)
		row := r.KV * f16Bytes
		m := b.c.View4D(masks, [4]int{r.KV, r.N, 1, r.count}, [3]int{row, row * r.N, row * r.N}, mask*f16Bytes)
		k := b.cached(b.mem.K[b.cacheOf(layer)], r, key, key, kvHeads)
		v := k
		if b.p.Latent > 0 { // the value is the key's beginning
			v = b.cached(b.mem.K[b.cacheOf(layer)], r, value, key, kvHeads)
		} else {
			v = b.cached(b.mem.V[b.cacheOf(layer)], r, value, value, kvHeads)
		}
		var a ggml.Tensor
		if b.tiles(r, key, value, how) {
			queries := ggml.Heads{Tensor: qr, Width: key, Next: nb2, Head: nb1, Batch: nb2 * r.N}
			mask := ggml.Heads{Tensor: m, Next: row, Batch: row * r.N}
			a = b.c.TiledAttention(queries, b.heads(k, key, kvHeads), b.heads(v, value, kvHeads), mask,
				heads, kvHeads, r.N, r.KV, r.count, b.p.AttentionScale)
		} else {
			qr = b.c.Permute(qr, [4]int{0, 2, 1, 3}) // [key, tokens, heads, count]
			a = b.c.FlashAttention(qr, k, v, m, how.Sinks, b.p.AttentionScale, how.SoftCap)
		}
		a = b.c.Reshape2D(a, heads*value, r.N*r.count)
		if first == 0 {
			out = a
		} else {
			out = b.c.Concat(out, a, 1)
		}
		first += r.N * r.count
		mask += r.KV * r.N * r.count
	}
	return out
}

const f16Bytes = 2

// cached shows a bundle's part of a KV cache tensor, whose rows are heads of
// width elements each, as [dim, positions, heads, count]: the first dim elements
// of each head.
func (b *Builder) cached(cache ggml.Tensor, r bundle, dim, width, heads int) ggml.Tensor {
	head := b.mem.Cache.RowBytes(width)
	row := head * heads
	slot := b.mem.Context * row
	return b.c.View4D(cache, [4]int{dim, r.KV, heads, r.count}, [3]int{row, head, slot}, r.Slot*slot)
}

// heads tells where the heads lie in a part of the cache that cached returned,
// whose rows have as many elements as the part shows.
func (b *Builder) heads(part ggml.Tensor, width, heads int) ggml.Heads {
	head := b.mem.Cache.RowBytes(width)
	return ggml.Heads{Tensor: part, Width: width, Next: head * heads, Head: head, Batch: head * heads * b.mem.Context}
}

// bundle is count runs of one shape in consecutive slots, which attention takes
// in one operation.
type bundle struct {
	Run
	count int
}

// bundles groups runs in their order.
func bundles(runs []Run) (out []bundle) {
	for _, r := range runs {
		if n := len(out); n > 0 {
			last := &out[n-1]
			if last.N == r.N && last.KV == r.KV && last.Slot+last.count == r.Slot {
				last.count++
				continue
			}
		}
		out = append(out, bundle{r, 1})
	}
	return out
}

// tiledTokens is from how many tokens of a run on a CPU's attention goes by tiles
// of our own: below, ggml's fused operation is faster.
const tiledTokens = 8

// tiles tells whether a run's attention is one that TiledAttention computes: on a
// CPU, whose fused operation in the linked ggml goes position by position.
func (b *Builder) tiles(r bundle, key, value int, how Attend) bool {
	return b.mem.Host && b.mem.Cache == ggml.F16 && b.p.Latent == 0 && !how.Sinks.Valid() && how.SoftCap == 0 &&
		r.N >= tiledTokens && max(key, value) <= ggml.MaxHead && key%8 == 0 && value%8 == 0
}
