package model

import (
	"errors"
	"fmt"
	"sort"
	"strings"

	"daisy/inference/ggml"
	"daisy/inference/gguf"
	"daisy/inference/plan"
)

// ErrUnsupported: a sound file that no architecture here can run.
var ErrUnsupported = errors.New("not supported")

// Arch is one model's architecture with its hyperparameters.
type Arch interface {
	// Params are the hyperparameters.
	Params() *Params
	// Specs lists every tensor the forward pass uses.
	Specs() []Spec
	// Build appends the forward pass over the builder's tokens.
	Build(b *Builder)
}

// Params are the hyperparameters that all architectures share.
type Params struct {
	Name       string // architecture, as in general.architecture
	Layers     int
	Dim        int // width of the residual stream
	Heads      int // query heads
	KVHeads    int
	HeadDim    int // width of one head
	FFN        int // feed-forward columns
	Vocab      int
	TrainedCtx int // context length the model was trained for
	Eps        float32
	// FFNUnit is where feed-forward columns may be cut: at its multiples. New sets
	// it from the quantisation blocks of the file.
	FFNUnit     int
	ExpertsUsed int // experts that compute a token; 0 when there are none
	ValueDim    int // width of a head's values where it is not HeadDim
	// Latent, when not 0, says that the cache holds for all heads, on every rank,
	// one value of that width, and as key the same followed by Rope.Dims elements.
	Latent int
	// Constants are F32 vectors that the forward pass uses like weights, by name,
	// and that no file holds.
	Constants map[string][]float32
	// AttentionScale multiplies the scores before the softmax.
	AttentionScale float32
	Rope           ggml.Rope // FreqFactors is filled in by the architecture's Build
	// Window is how many positions, its own included, a token sees in layers
	// whose attention is windowed; 0 when the model has none.
	Window int
}

// Group is the number of query heads that share a KV head.
func (p *Params) Group() int { return p.Heads / p.KVHeads }

// valueDim is the width of one head's value.
func (p *Params) valueDim() int {
	if p.ValueDim == 0 {
		return p.HeadDim
	}
	return p.ValueDim
}

// ffn is the rank's part of n feed-forward columns, at least FFN: in proportion
// to r of FFN, at multiples of FFNUnit. Ranges that join in FFN join in n.
func (p *Params) ffn(r plan.Range, n int) plan.Range {
	at := func(c int) int {
		if c == p.FFN {
			return n
		}
		return c * n / p.FFN / p.FFNUnit * p.FFNUnit
	}
	if n != p.FFN {
		r = plan.Range{Lo: at(r.Lo), Hi: at(r.Hi)}
	}
	return r
}

// CacheHeads are the widths of the heads that attention takes from the cache.
func (p *Params) CacheHeads() []int {
	if p.Latent > 0 {
		return []int{p.Latent, p.valueDim()}
	}
	return []int{p.HeadDim, p.valueDim()}
}

// CacheWidths are the elements that one position takes in a layer's K and V cache.
func (p *Params) CacheWidths(shard plan.Shard) (k, v int) {
	if p.Latent > 0 {
		return p.Latent + p.Rope.Dims, 0
	}
	return shard.KVHeads.Len() * p.HeadDim, shard.KVHeads.Len() * p.valueDim()
}

var architectures = map[string]func(*gguf.File) (Arch, error){
	"deepseek2": newDeepSeek2,
	"gemma3":    newGemma3,
	"gpt-oss":   newGPTOSS,
	"granite":   newGranite,
	"llama":     newLlama,
	"phi3":      newPhi3,
	"qwen2":     newQwen2,
	"qwen3":     newQwen3,
	"qwen3moe":  newQwen3MoE,
}

// New reads the architecture of a file. The error names what is missing or wrong
// and is one line; ErrUnsupported tells a sound file from a broken one.
func New(f *gguf.File) (Arch, error) {
	name, ok := f.String("general.architecture")
	if !ok {
		return nil, errors.New("general.architecture is missing: this file holds no model")
	}
	make, ok := architectures[name]
	if !ok {
		return nil, fmt.Errorf("architecture %q: %w (this version runs %s)", name, ErrUnsupported, strings.Join(Supported(), ", "))
	}
	a, err := make(f)
	if err != nil {
		return nil, err
	}
	if err := checkTensors(f, a); err != nil {
		return nil, err
	}
	a.Params().FFNUnit = ffnUnit(f, a)
	return a, nil
}

// Supported lists the architectures' names.
func Supported() []string {
	names := []string{}
	for n := range architectures {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

// checkTensors compares the file's tensors with the specs: all there, of the
// shapes that the forward pass relies on, and none that it would ignore.
func checkTensors(f *gguf.File, a Arch) error {
	known := map[string]bool{}
	for _, s := range a.Specs() {
		known[s.Name] = true
		t, ok := f.Tensor(s.Name)
		if !ok {
			if s.Optional {
				continue
			}
			return fmt.Errorf("tensor %q is missing", s.Name)
		}
		if !s.fits(t.Shape) {
			return fmt.Errorf("tensor %q has shape %v, want %v", s.Name, t.Shape, s.Shape)
		}
		if s.Use == Vector && t.Type != gguf.Type(ggml.F32) {
			return fmt.Errorf("tensor %q is %s, only F32 works there: %w", s.Name, t.Type, ErrUnsupported)
		}
		if !weightTypes[t.Type] {
			return fmt.Errorf("tensor %q: weights of type %s: %w", s.Name, t.Type, ErrUnsupported)
		}
	}
	for _, t := range f.Tensors() {
		if !known[t.Name] {
			return fmt.Errorf("tensor %q has no place in architecture %q: %w", t.Name, a.Params().Name, ErrUnsupported)
		}
	}
	return nil
}

// Shape says how the model can be dealt out to ranks.
func Shape(f *gguf.File, a Arch) plan.Shape {
	p := a.Params()
	s := plan.Shape{
		Layers: p.Layers,
		Heads:  p.Heads, HeadUnit: 1,
		KVHeads: p.KVHeads, KVHeadUnit: 1,
		FFN: p.FFN, FFNUnit: p.FFNUnit,
		Vocab: p.Vocab, VocabUnit: 8, // ggml repacks rows by eight
	}
	for _, spec := range a.Specs() {
		t, ok := f.Tensor(spec.Name)
		if !ok {
			continue
		}
		if spec.Rule == HeadColumns {
			// Columns are cut where quantisation blocks begin.
			block := int(t.Type.BlockSize())
			for s.HeadUnit*p.valueDim()%block != 0 {
				s.HeadUnit++
			}
			for (s.KVHeadUnit*p.Group()*p.valueDim())%block != 0 && s.KVHeadUnit < p.KVHeads {
				s.KVHeadUnit++
			}
		}
	}
	return s
}

// ffnUnit is where feed-forward columns may be cut: where quantisation blocks
// begin.
func ffnUnit(f *gguf.File, a Arch) int {
	unit := 32
	for _, spec := range a.Specs() {
		if t, ok := f.Tensor(spec.Name); ok && spec.Rule == FFNColumns {
			unit = max(unit, int(t.Type.BlockSize()))
		}
	}
	return unit
}
