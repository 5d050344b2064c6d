// Package profile reads from a model file's header what package plan needs to
// know. It looks at metadata and the tensor list only, so the tensors' data need
// not be there.
package profile

import (
	"strconv"
	"strings"

	"daisy/inference/gguf"
	"daisy/inference/model"
	"daisy/inference/plan"
)

// Of describes a model. It returns the error of model.New for files that the
// engine cannot run.
func Of(f *gguf.File) (*plan.Model, error) {
	a, err := model.New(f)
	if err != nil {
		return nil, err
	}
	return describe(f, a), nil
}

// Open reads the header at path, of which the tensor data may be missing.
func Open(path string) (*plan.Model, error) {
	f, err := gguf.OpenHeader(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Of(f)
}

func describe(f *gguf.File, a model.Arch) *plan.Model {
	p := a.Params()
	m := &plan.Model{
		Shape:      model.Shape(f, a),
		Dim:        p.Dim,
		Layers:     make([]plan.Layer, p.Layers),
		Used:       p.ExpertsUsed,
		MaxContext: p.TrainedCtx,
	}
	m.Name, _ = f.String("general.name")
	if p.ExpertsUsed > 0 {
		n, _ := f.Uint(p.Name + ".expert_count")
		m.Experts = int(n)
	}
	windowed := windows(f, p)
	for i := range m.Layers {
		l := &m.Layers[i]
		k, v := p.CacheWidths(plan.Shard{KVHeads: plan.Range{Lo: 0, Hi: 1}})
		l.KVWidth = float64(k + v)
		heads := p.CacheHeads()
		l.Score = float64(heads[0] + heads[1])
		if p.Latent > 0 { // on every rank, and attention happens in the latent space
			l.KVWidth, l.Latent = 0, float64(k)
			l.Score = float64(k + p.Latent)
		}
		if windowed(i) {
			l.Window = p.Window
		}
	}
	for _, s := range a.Specs() {
		if t, ok := f.Tensor(s.Name); ok {
			add(m, p, s, plan.Weights{Bytes: float64(t.Bytes()), Elements: float64(t.Elements())})
		}
	}
	m.Scratch = scratch(p)
	return m
}

// add puts a tensor's weights where plans count them.
func add(m *plan.Model, p *model.Params, s model.Spec, w plan.Weights) {
	layer, inLayer := layerOf(s.Name, len(m.Layers))
	if !inLayer {
		to := &m.Other
		switch {
		case s.Rule != model.VocabRows:
		case s.Use == model.Lookup:
			to = &m.Embed
		default:
			to = &m.Output
		}
		*to = to.Add(w)
		return
	}
	l := &m.Layers[layer]
	var to *plan.Weights
	switch s.Rule {
	case model.HeadRows, model.HeadColumns, model.Heads, model.HeadStack:
		to = &l.Heads
	case model.KVHeadRows:
		to = &l.KVHeads
	case model.QKVRows:
		q := float64(p.Heads) / float64(p.Heads+2*p.KVHeads)
		l.KVHeads = l.KVHeads.Add(plan.Weights{Bytes: w.Bytes * (1 - q), Elements: w.Elements * (1 - q)})
		to, w = &l.Heads, plan.Weights{Bytes: w.Bytes * q, Elements: w.Elements * q}
	case model.FFNRows, model.GateUpRows, model.FFNColumns:
		to = &l.FFN
		if s.Use == model.Experts {
			to = &l.Experts
		}
	default:
		to = &l.Router
		if strings.Contains(s.Name, "attn") {
			to = &l.Attention
		}
	}
	*to = to.Add(w)
}

// layerOf reads the layer from a tensor's name, as in blk.7.attn_q.weight.
func layerOf(name string, layers int) (int, bool) {
	rest, ok := strings.CutPrefix(name, "blk.")
	if !ok {
		return 0, false
	}
	number, _, _ := strings.Cut(rest, ".")
	i, err := strconv.Atoi(number)
	return i, err == nil && i >= 0 && i < layers
}

// windows tells which layers see a window only.
func windows(f *gguf.File, p *model.Params) func(layer int) bool {
	switch {
	case p.Window == 0:
		return func(int) bool { return false }
	case p.Name == "gpt-oss":
		return func(i int) bool { return i%2 == 0 }
	case p.Name == "gemma3":
		period, ok := f.Uint("gemma3.attention.sliding_window_pattern")
		if !ok || period == 0 {
			period = 6
		}
		return func(i int) bool { return uint64(i+1)%period != 0 }
	}
	return func(int) bool { return true }
}

// scratch is about what a token takes while a layer computes, in bytes: some
// copies of the residual stream, queries with what attention makes of them, and
// the feed-forward columns, those of each chosen expert with its output.
func scratch(p *model.Params) float64 {
	heads := p.CacheHeads()
	attention := 3 * float64(p.Heads) * float64(heads[0]+heads[1])
	columns, used := 3*float64(p.FFN), 1.0
	if p.ExpertsUsed > 0 {
		used = float64(p.ExpertsUsed)
		columns += 2 * float64(p.Dim)
	}
	return 4 * (4*float64(p.Dim) + attention + columns*used)
}
