package inference

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"daisy/inference/ggml"
	"daisy/inference/gguf"
	"daisy/inference/machine"
	"daisy/inference/model"

	"golang.org/x/sync/errgroup"
)

// weights is one rank's shard of a model in memory.
type weights struct {
	tensors map[string]ggml.Tensor
	joined  map[string]model.Joined
	context *ggml.Context
	buffers []*ggml.Buffer
	mapped  []*mapping
	bytes   int64 // of the shard, as in the file
}

// loadWeights reads the parts of the file that the shard names. Tensors of local
// files that are neither cut nor repacked are mapped on a CPU instead of read. What is read, and
// besides bytes for other things, must fit into the machine's memory.
func loadWeights(ctx context.Context, f *gguf.File, a model.Arch, place model.Place, b *ggml.Backend, besides float64, progress func(loaded, total int64)) (_ *weights, err error) {
	specs := a.Specs()
	w := &weights{tensors: map[string]ggml.Tensor{}, joined: map[string]model.Joined{}}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	constants := a.Params().Constants
	if w.context, err = ggml.NewContext(len(specs)+len(constants), 0, 0); err != nil {
		return nil, err
	}
	var mapped, plain, packed []*part
	host := b.Memory().Host()
	repacked, canRepack := b.Repacked()
	for _, s := range specs {
		t, ok := f.Tensor(s.Name)
		if !ok || !place.Holds(s.Name, a.Params(), f) {
			continue
		}
		p := newPart(s, t, s.Cut(a.Params(), place.Shard))
		if s.Use != model.Vector && !multiplies(b.Memory(), p) {
			return nil, fmt.Errorf("tensor %q: weights of type %s: %w", s.Name, t.Type, ErrUnsupported)
		}
		switch {
		case canRepack && (s.Use == model.Matrix || s.Use == model.Experts) && multiplies(repacked, p):
			if n := len(packed); n > 0 && packed[n-1].join(p) {
				continue // repacked memory is written anew, so joining costs nothing
			}
			packed = append(packed, p)
		case host && p.whole() && s.Use != model.Vector && f.Local(t.Part) != nil:
			mapped = append(mapped, p)
		default:
			plain = append(plain, p)
		}
	}
	for _, p := range slices.Concat(mapped, plain, packed) {
		w.add(p)
	}
	need := besides
	for _, p := range slices.Concat(plain, packed) {
		need += float64(p.bytes)
	}
	if have := machine.MemoryBytes(); have > 0 && need > float64(have) {
		return nil, fmt.Errorf("%w: %.1f GB are needed, this machine has %.1f GB", ErrNoMemory, need/1e9, float64(have)/1e9)
	}
	if mapped, err = w.mapParts(f, b, mapped); err != nil {
		return nil, err
	}
	plain = append(plain, mapped...) // those whose place in the file is not aligned
	if err := w.place(b.Memory(), plain); err != nil {
		return nil, err
	}
	if err := w.place(repacked, packed); err != nil {
		return nil, err
	}
	if err := w.placeConstants(b.Memory(), constants); err != nil {
		return nil, err
	}
	return w, w.read(ctx, f, plain, packed, progress)
}

// placeConstants makes tensors of what no file holds.
func (w *weights) placeConstants(t ggml.BufferType, constants map[string][]float32) error {
	var parts []*part
	for name, values := range constants {
		x := w.context.NewTensor(ggml.F32, len(values))
		w.tensors[name] = x
		parts = append(parts, &part{tensor: x})
	}
	if err := w.place(t, parts); err != nil {
		return err
	}
	for name, values := range constants {
		w.tensors[name].Set(bytesOf(values), 0)
	}
	return nil
}

// add makes the part's tensor.
func (w *weights) add(p *part) {
	p.tensor = w.context.NewTensor(p.kind, p.shape...)
	p.bytes = p.tensor.Bytes()
	w.bytes += int64(p.bytes)
	if len(p.pieces) == 1 {
		w.tensors[p.name()] = p.tensor
		return
	}
	first := 0
	for _, c := range p.pieces {
		rows := c.cut.Rows(c.spec)
		w.joined[c.spec.Name] = model.Joined{Whole: p.tensor, First: first, Rows: rows, Width: p.shape[1]}
		first += rows
	}
}

// multiplies tells whether the part can be multiplied out of memory of that type.
func multiplies(t ggml.BufferType, p *part) bool {
	if p.pieces[0].spec.Use == model.Experts {
		return t.MultipliesChosen(p.kind, p.shape[0], p.shape[1], p.shape[2])
	}
	return t.Multiplies(p.kind, p.shape[0], p.shape[1])
}

// place allocates one buffer for all the parts.
func (w *weights) place(t ggml.BufferType, parts []*part) error {
	if len(parts) == 0 {
		return nil
	}
	var tensors []ggml.Tensor
	for _, p := range parts {
		tensors = append(tensors, p.tensor)
	}
	buffer, err := t.NewBuffer(t.PlacedBytes(tensors))
	if err != nil {
		return err
	}
	w.buffers = append(w.buffers, buffer)
	buffer.Weights()
	next := 0
	for _, p := range parts {
		p.buffer, p.offset = buffer, (next+t.Alignment()-1)/t.Alignment()*t.Alignment()
		if err := buffer.PlaceAt(p.tensor, p.offset); err != nil {
			return err
		}
		next = p.offset + t.TensorBytes(p.tensor)
	}
	return nil
}

// readers is how many slabs are read at a time.
const readers = 4

// read fills the parts' tensors.
func (w *weights) read(ctx context.Context, f *gguf.File, plain, packed []*part, progress func(loaded, total int64)) error {
	var slabs []slab
	loaded, total := w.bytes, w.bytes // what is mapped counts as loaded
	for _, p := range plain {
		slabs = append(slabs, p.slabs(false)...)
	}
	for _, p := range packed {
		slabs = append(slabs, p.slabs(true)...)
	}
	for _, s := range slabs {
		loaded -= s.hi - s.lo
	}
	var mu sync.Mutex // guards slabs and loaded, and orders calls of progress
	tell := func(n int64) {
		if loaded += n; progress != nil {
			progress(loaded, total)
		}
	}
	take := func() (s slab, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		if len(slabs) == 0 {
			return s, false
		}
		s, slabs = slabs[0], slabs[1:]
		return s, true
	}
	tell(0)
	g, ctx := errgroup.WithContext(ctx)
	for range min(readers, len(slabs)) {
		g.Go(func() error {
			r := reader{file: f}
			for {
				s, ok := take()
				if !ok {
					return nil
				}
				data, err := r.read(ctx, s)
				if err != nil {
					return err
				}
				if err := s.set(data); err != nil {
					return err
				}
				mu.Lock()
				tell(s.hi - s.lo)
				mu.Unlock()
			}
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return f.CheckSource()
}

// mapParts maps the files and places tensors in the mapping; it returns those
// that lie there unaligned.
func (w *weights) mapParts(f *gguf.File, b *ggml.Backend, parts []*part) (rest []*part, err error) {
	if len(parts) == 0 {
		return nil, nil
	}
	buffers, files := map[int]*ggml.Buffer{}, map[int]*mapping{}
	for _, p := range parts {
		t := p.pieces[0].file
		i := t.Part
		if err := f.CheckLocal(i); err != nil {
			return nil, err
		}
		if buffers[i] == nil {
			if files[i], err = mapFile(f.Local(i), f.Parts()[i].Size); err != nil {
				return nil, err
			}
			w.mapped = append(w.mapped, files[i])
			if buffers[i], err = ggml.WrapHost(files[i].data, b.Memory()); err != nil {
				return nil, err
			}
			w.buffers = append(w.buffers, buffers[i])
			buffers[i].Weights()
		}
		if t.Offset%int64(b.Memory().Alignment()) != 0 {
			rest = append(rest, p)
			continue
		}
		if err := buffers[i].PlaceAt(p.tensor, int(t.Offset)); err != nil {
			return nil, fmt.Errorf("tensor %q: %w", p.name(), err)
		}
		files[i].want(t.Offset, t.Bytes())
	}
	return rest, nil
}

func (w *weights) close() {
	for _, b := range w.buffers {
		b.Close()
	}
	for _, m := range w.mapped {
		m.close()
	}
	if w.context != nil {
		w.context.Close()
	}
}
