package model

import (
	"iter"

	"daisy/inference/ggml"
)

const f32Bytes = 4

// Outputs is the number of tokens whose logits are wanted; 0 when a pass only
// fills the KV cache.
func (b *Builder) Outputs() int { return b.outputs }

// Context is how many positions a sequence may have.
func (b *Builder) Context() int { return b.mem.Context }

// Weight returns this rank's shard of a tensor, absent when the file has none.
func (b *Builder) Weight(name string) ggml.Tensor { return b.mem.Weights[name] }

// Embed looks up the batch's tokens and scales them: [Dim, n]. The embedding is
// dealt out by vocabulary rows: a rank looks up what it has and puts zeros for the
// rest. In a later stage it is what the stage before handed on.
func (b *Builder) Embed(name string, scale float32) ggml.Tensor {
	if !b.place.First() {
		b.in = b.nextPlace(b.n)
		b.kept, b.lastPlaced = b.in, b.in
		return b.in
	}
	x := b.c.GetRows(b.Weight(name), b.c.View1D(b.mem.Tokens, b.n, 0))
	if b.world == 1 {
		return b.Scale(x, scale)
	}
	own := b.c.View2D(b.mem.OwnToken, 1, b.n, f32Bytes, 0)
	return b.Scale(b.meet(b.c.Mul(x, own)), scale)
}

// Layers are those of the rank's stage.
func (b *Builder) Layers() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := b.place.Layers.Lo; i < b.place.Layers.Hi && yield(i); i++ {
		}
	}
}

// cacheOf is a layer's place in the KV cache, which has those of the stage.
func (b *Builder) cacheOf(layer int) int { return layer - b.place.Layers.Lo }

// HandOn ends the pass with x [Dim, n], for the next stage to go on with; in the
// last stage it does nothing and returns false.
func (b *Builder) HandOn(x ggml.Tensor) bool {
	if b.place.Last(b.p) {
		return false
	}
	if x != b.lastPlaced {
		x = b.placed(x)
	}
	b.out = x
	return true
}

// RMSNorm normalises x and scales it by the weight of that name.
func (b *Builder) RMSNorm(x ggml.Tensor, name string) ggml.Tensor {
	return b.c.Mul(b.c.RMSNorm(x, b.p.Eps), b.Weight(name))
}

// MulMat multiplies this rank's shard of the weight with x.
func (b *Builder) MulMat(name string, x ggml.Tensor) ggml.Tensor {
	return b.c.MulMat(b.Weight(name), x)
}

// MulQKV multiplies a layer's query, key and value matrices with x: [rows, n] each.
func (b *Builder) MulQKV(at func(string) string, x ggml.Tensor) (q, k, v ggml.Tensor) {
	var out [3]ggml.Tensor
	b.mulAll(out[:], x, at("attn_q.weight"), at("attn_k.weight"), at("attn_v.weight"))
	return out[0], out[1], out[2]
}

// MulGateUp multiplies a layer's gate and up matrices with x: [FFN columns, n] each.
func (b *Builder) MulGateUp(at func(string) string, x ggml.Tensor) (gate, up ggml.Tensor) {
	var out [2]ggml.Tensor
	b.mulAll(out[:], x, at("ffn_gate.weight"), at("ffn_up.weight"))
	return out[0], out[1]
}

// mulAll multiplies each weight with x, those that are joined in one operation.
func (b *Builder) mulAll(out []ggml.Tensor, x ggml.Tensor, names ...string) {
	var whole, product ggml.Tensor
	for i, name := range names {
		j, ok := b.mem.Joined[name]
		if !ok {
			out[i] = b.MulMat(name, x)
			continue
		}
		if j.Whole != whole {
			whole, product = j.Whole, b.c.MulMat(j.Whole, x)
		}
		out[i] = b.Rows(product, j.Width, j.First, j.Rows)
		b.strided[out[i]] = j
	}
}

// AddBias adds the vector of that name to x, if the file has it. It is cut like
// the rows of the matrix that x comes from.
func (b *Builder) AddBias(x ggml.Tensor, name string) ggml.Tensor {
	if w := b.Weight(name); w.Valid() {
		return b.c.AddTo(x, w)
	}
	return x
}

// AddBiasOnce is AddBias for a partial result that is summed over ranks: one of
// them adds the vector, which is not cut.
func (b *Builder) AddBiasOnce(x ggml.Tensor, name string) ggml.Tensor {
	if b.rank != 0 {
		return x
	}
	return b.AddBias(x, name)
}

// Rows shows rows lo..lo+n-1 of x [width, tokens] as [n, tokens].
func (b *Builder) Rows(x ggml.Tensor, width, lo, n int) ggml.Tensor {
	return b.c.View2D(x, n, x.Bytes()/(f32Bytes*width), f32Bytes*width, f32Bytes*lo)
}

// QKV splits x, the product with a matrix of rule QKVRows, into queries and keys
// [HeadDim, heads, n] and values [KV heads * HeadDim, n].
func (b *Builder) QKV(x ggml.Tensor) (q, k, v ggml.Tensor) {
	d, heads, kvHeads := b.p.HeadDim, b.shard.Heads.Len(), b.shard.KVHeads.Len()
	width := (heads + 2*kvHeads) * d
	split := func(first, heads int) ggml.Tensor {
		return b.c.View3D(x, d, heads, b.n, f32Bytes*d, f32Bytes*width, f32Bytes*d*first)
	}
	return split(0, heads), split(heads, kvHeads), b.Rows(x, width, (heads+kvHeads)*d, kvHeads*d)
}

// GateUp splits x, the product with a matrix of rule GateUpRows, into the two.
func (b *Builder) GateUp(x ggml.Tensor) (gate, up ggml.Tensor) {
	n := b.shard.FFN.Len()
	return b.Rows(x, 2*n, 0, n), b.Rows(x, 2*n, n, n)
}

// SwiGLU returns silu(gate) * up.
func (b *Builder) SwiGLU(gate, up ggml.Tensor) ggml.Tensor { return b.c.SwiGLU(gate, up) }

// GeGLU returns gelu(gate) * up, with the tanh approximation.
func (b *Builder) GeGLU(gate, up ggml.Tensor) ggml.Tensor { return b.c.GeGLU(gate, up) }

// Add returns x + y, of one shape.
func (b *Builder) Add(x, y ggml.Tensor) ggml.Tensor { return b.c.AddTo(x, y) }

// SoftCap returns limit * tanh(x / limit); x itself for limit 0.
func (b *Builder) SoftCap(x ggml.Tensor, limit float32) ggml.Tensor {
	if limit == 0 {
		return x
	}
	return b.c.Scale(b.c.Tanh(b.c.Scale(x, 1/limit)), limit)
}

// Scale returns x times s; x itself for 1.
func (b *Builder) Scale(x ggml.Tensor, s float32) ggml.Tensor {
	if s == 1 {
		return x
	}
	return b.c.Scale(x, s)
}

// Heads splits x [heads * HeadDim, n] into [HeadDim, heads, n], for query and KV
// heads alike.
func (b *Builder) Heads(x ggml.Tensor) ggml.Tensor {
	d := b.p.HeadDim
	if j, ok := b.strided[x]; ok {
		return b.c.View3D(x, d, j.Rows/d, b.n, f32Bytes*d, f32Bytes*j.Width, 0)
	}
	return b.c.Reshape3D(x, d, x.Bytes()/(f32Bytes*d*b.n), b.n)
}

// Rope rotates the heads of x [HeadDim, heads, n] by their positions.
func (b *Builder) Rope(x ggml.Tensor, r ggml.Rope) ggml.Tensor {
	return b.c.Rope(x, b.c.View1D(b.mem.Pos, b.n, 0), r)
}

// StoreKV writes the batch's keys [HeadDim, KV heads, n] and values
// [KV heads * value width, n] into the KV cache; in a latent cache, keys alone.
func (b *Builder) StoreKV(layer int, k, v ggml.Tensor) {
	rows := b.c.View1D(b.mem.CacheRow, b.n, 0)
	width, vWidth := b.p.CacheWidths(b.shard)
	b.graph.Add(b.c.SetRows(b.mem.K[b.cacheOf(layer)], b.c.Reshape2D(k, width, b.n), rows))
	if vWidth > 0 {
		b.graph.Add(b.c.SetRows(b.mem.V[b.cacheOf(layer)], v, rows))
	}
}

// SelectOutputs keeps the tokens whose logits are wanted: [width, outputs]. What
// follows works on those alone.
func (b *Builder) SelectOutputs(x ggml.Tensor) ggml.Tensor {
	if b.outputs == b.n {
		return x // every token, in order
	}
	return b.c.GetRows(x, b.c.View1D(b.mem.Outputs, b.outputs, 0))
}

// SumRanks adds the ranks' partial results to the residual stream x, once. On
// every rank the result has the same bits.
func (b *Builder) SumRanks(x, partial ggml.Tensor) ggml.Tensor {
	if b.world == 1 {
		return b.c.AddTo(partial, x)
	}
	if b.rank == 0 { // the residual is added by one rank
		partial = b.c.AddTo(partial, x)
	}
	return b.meet(partial)
}

// meet ends the segment with x [Dim, tokens], which is summed over all ranks,
// and returns the sum for the next segment.
func (b *Builder) meet(x ggml.Tensor) ggml.Tensor {
	sum := b.placed(x)
	b.endSegment(x, x.Bytes()/f32Bytes)
	return sum
}

// placed has x [Dim, tokens] computed into the next of the stream's places. What
// it returns has those bytes, and is what later segments may use: with x itself
// they would compute it again.
func (b *Builder) placed(x ggml.Tensor) ggml.Tensor {
	if err := b.mem.Stream[b.turn].PlaceAt(x, 0); err != nil {
		b.fail(err)
	}
	b.graph.Add(x)
	b.lastPlaced = b.nextPlace(x.Bytes() / (f32Bytes * b.p.Dim))
	return b.lastPlaced
}

// nextPlace is the next of the stream's places as a tensor [Dim, n].
func (b *Builder) nextPlace(n int) ggml.Tensor {
	t := b.c.NewTensor(ggml.F32, b.p.Dim, n)
	if err := b.mem.Stream[b.turn].PlaceAt(t, 0); err != nil {
		b.fail(err)
	}
	b.turn = (b.turn + 1) % len(b.mem.Stream)
	return t
}

// Keep makes x [Dim, tokens] outlive its segment: what is added to a sum only
// after the ranks have met.
func (b *Builder) Keep(x ggml.Tensor) ggml.Tensor {
	if b.world == 1 || x == b.kept {
		return x
	}
	b.kept = b.placed(x)
	return b.kept
}

// Sum returns the sum of the ranks' partial results, the same bits on all.
func (b *Builder) Sum(partial ggml.Tensor) ggml.Tensor {
	if b.world == 1 {
		return partial
	}
	return b.meet(partial)
}

func (b *Builder) endSegment(sum ggml.Tensor, n int) {
	if b.graph.Nodes() > 0 || sum.Valid() {
		b.segments = append(b.segments, Segment{b.graph, sum, n})
	}
	if b.world > 1 && sum.Valid() {
		b.graph = b.c.NewGraph(b.graphNodes)
	}
}

// Logits ends the pass with x [vocabulary shard, outputs].
func (b *Builder) Logits(x ggml.Tensor) {
	if err := b.mem.Logits.PlaceAt(x, 0); err != nil {
		b.fail(err)
	}
	b.graph.Add(x)
	b.logits = x
}

func (b *Builder) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}
