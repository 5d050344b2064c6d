package calibrate

import (
	"daisy/inference/ggml"
)

const (
	layers     = 8  // in the graph that is timed
	positions  = 32 // that attention looks at
	layerNodes = 32
)

// layer is what a layer takes besides its matrices, in seconds: norms, rotating,
// writing the cache, attention over few positions, the activation, sums. What is
// as wide as the model is zeros.
func (p *probe) layer(w *Workload, launch float64) (float64, error) {
	c, err := ggml.NewContext(16+layers*layerNodes, 1, layers*layerNodes)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	kv := w.KVHeads * w.HeadDim
	x, norm := c.NewTensor(ggml.F32, w.Dim, 1), c.NewTensor(ggml.F32, w.Dim)
	q, k := c.NewTensor(ggml.F32, w.HeadDim, w.Heads, 1), c.NewTensor(ggml.F32, w.HeadDim, w.KVHeads, 1)
	wide, narrow := c.NewTensor(ggml.F32, w.FFN, 1), c.NewTensor(ggml.F32, w.Dim, 1)
	cacheK, cacheV := c.NewTensor(ggml.F16, kv, positions), c.NewTensor(ggml.F16, kv, positions)
	pos, row := c.NewTensor(ggml.I32, 1), c.NewTensor(ggml.I64, 1)
	mask := c.NewTensor(ggml.F16, positions, 1)
	inputs, err := p.zeroed(x, norm, q, k, wide, narrow, cacheK, cacheV, pos, row, mask)
	if err != nil {
		return 0, err
	}
	defer inputs.Close()
	g := c.NewGraph(layers * layerNodes)
	row2 := ggml.F16.RowBytes(kv)
	head := ggml.F16.RowBytes(w.HeadDim)
	rope := w.Rope
	rope.FreqFactors = ggml.Tensor{}
	for range layers {
		g.Add(c.Mul(c.RMSNorm(x, 1e-5), norm))
		g.Add(c.SetRows(cacheK, c.Reshape2D(c.Rope(k, pos, rope), kv, 1), row))
		g.Add(c.SetRows(cacheV, c.Reshape2D(k, kv, 1), row))
		// [head, positions, KV heads]
		keys := c.View3D(cacheK, w.HeadDim, positions, w.KVHeads, row2, head, 0)
		values := c.View3D(cacheV, w.HeadDim, positions, w.KVHeads, row2, head, 0)
		queries := c.Permute(c.Rope(q, pos, rope), [4]int{0, 2, 1, 3})
		g.Add(c.FlashAttention(queries, keys, values, mask, ggml.Tensor{}, 1, 0))
		x = c.AddTo(narrow, x)
		g.Add(c.Mul(c.RMSNorm(x, 1e-5), norm))
		g.Add(c.SwiGLU(wide, wide))
		x = c.AddTo(narrow, x)
	}
	g.Add(x)
	seconds, err := p.placed(g, 4)
	return max(0, seconds-launch) / layers, err
}
