package calibrate

import (
	"cmp"
	"slices"

	"daisy/inference/ggml"
	"daisy/inference/gguf"
	"daisy/inference/model"
)

// Workload is what decoding and prefill of a model ask of a machine.
type Workload struct {
	Matrices []Matrix // what a token is multiplied with, the most bytes first
	Dim, FFN int      // width of the residual stream, and of the feed-forward block
	Heads    int
	KVHeads  int
	HeadDim  int
	Rope     ggml.Rope
}

// Matrix stands for all of a model's matrices of one type and shape.
type Matrix struct {
	Type    ggml.Type
	Columns int // ne0
	Rows    int // ne1
	InLayer bool
	Count   float64 // that a token uses
}

// bytes of one of them.
func (m Matrix) bytes() int { return m.Type.RowBytes(m.Columns) * m.Rows }

// Bytes that a token uses.
func (w *Workload) Bytes() (sum float64) {
	for _, m := range w.Matrices {
		sum += m.Count * float64(m.bytes())
	}
	return sum
}

// Of reads the workload from a model's header. The error is model.New's.
func Of(f *gguf.File) (*Workload, error) {
	a, err := model.New(f)
	if err != nil {
		return nil, err
	}
	p := a.Params()
	w := &Workload{Dim: p.Dim, FFN: p.FFN, Heads: p.Heads, KVHeads: p.KVHeads, HeadDim: p.HeadDim, Rope: p.Rope}
	_, untied := f.Tensor("output.weight")
	for _, s := range a.Specs() {
		t, ok := f.Tensor(s.Name)
		if !ok || s.Use == model.Vector || len(s.Shape) < 2 || s.Use == model.Lookup && untied {
			continue
		}
		m := Matrix{Type: ggml.Type(t.Type), Columns: s.Shape[0], Rows: s.Shape[1], InLayer: s.Rule != model.VocabRows}
		n := 1.0
		switch {
		case s.Use == model.Experts:
			n = float64(p.ExpertsUsed)
		case len(s.Shape) > 2:
			n = float64(s.Shape[2])
		}
		w.add(m, n)
	}
	slices.SortStableFunc(w.Matrices, func(a, b Matrix) int {
		return cmp.Compare(b.Count*float64(b.bytes()), a.Count*float64(a.bytes()))
	})
	return w, nil
}

func (w *Workload) add(m Matrix, n float64) {
	for i := range w.Matrices {
		if like := w.Matrices[i]; like.Type == m.Type && like.Columns == m.Columns && like.Rows == m.Rows && like.InLayer == m.InLayer {
			w.Matrices[i].Count += n
			return
		}
	}
	m.Count = n
	w.Matrices = append(w.Matrices, m)
}
