package inference

import (
	"fmt"

	"daisy/inference/ggml"
	"daisy/inference/model"
)

// maxBatch is the most tokens in one step: enough for ggml's matrix kernels to
// reach their full speed, little enough that decoding sequences need not wait
// long for another's prefill.
const maxBatch = 512

// memory holds what a rank's passes read and write: KV cache, inputs, the places
// where ranks meet. All of it is allocated once.
type memory struct {
	model.Memory
	context *ggml.Context
	buffers []*ggml.Buffer
	slots   int
	outputs int // most outputs in one step
	cache   int // bytes of the KV cache

	tokens   shared[int32]
	ownToken shared[float32]
	pos      shared[int32]
	cacheRow shared[int64]
	outRows  shared[int32]
	mask     shared[uint16]
	window   shared[uint16] // where the model has windowed layers
}

// memoryBytes is what newMemory will allocate, nearly. A float, since a hostile
// file's numbers could overflow an integer.
func memoryBytes(p *model.Params, place model.Place, slots, ctx int, cache ggml.Type) float64 {
	kDim, vDim := p.CacheWidths(place.Shard)
	row := float64(cache.RowBytes(kDim) + cache.RowBytes(vDim))
	masks := 1.0
	if p.Window > 0 {
		masks = 2
	}
	return float64(place.Layers.Len())*float64(slots)*float64(ctx)*row + // keys and values
		masks*2*maxBatch*float64(ctx) +
		float64(len(model.Memory{}.Stream))*4*float64(p.Dim)*maxBatch +
		4*float64(place.Shard.Vocab.Len())*float64(slots)
}

// shared is a tensor that the host writes or reads between graphs.
type shared[T any] struct {
	tensor ggml.Tensor
	values []T  // the tensor's own memory, or a copy that push sends
	direct bool // values is the tensor's memory
}

// newMemory allocates slots sequences of ctx positions each for one rank's shard.
func newMemory(a model.Arch, place model.Place, b *ggml.Backend, slots, ctx int, cacheType ggml.Type) (_ *memory, err error) {
	p := a.Params()
	m := &memory{slots: slots, outputs: slots}
	m.Context, m.Cache, m.Host = ctx, cacheType, b.Memory().Host()
	defer func() {
		if err != nil {
			m.close()
		}
	}()
	if m.context, err = ggml.NewContext(2*place.Layers.Len()+8, 0, 0); err != nil {
		return nil, err
	}
	kDim, vDim := p.CacheWidths(place.Shard)
	for _, width := range append(p.CacheHeads(), kDim, vDim) {
		if width%cacheType.BlockSize() != 0 {
			return nil, fmt.Errorf("KV cache of %d values a row in blocks of %d: %w", width, cacheType.BlockSize(), ErrUnsupported)
		}
	}
	var cache []ggml.Tensor
	for range place.Layers.Len() {
		k := m.context.NewTensor(cacheType, kDim, slots*ctx)
		m.K = append(m.K, k)
		cache = append(cache, k)
		if vDim > 0 {
			v := m.context.NewTensor(cacheType, vDim, slots*ctx)
			m.V = append(m.V, v)
			cache = append(cache, v)
		}
	}
	if m.cache, err = m.place(b, cache...); err != nil {
		return nil, fmt.Errorf("KV cache: %w", err)
	}
	m.Tokens = m.context.NewTensor(ggml.I32, maxBatch)
	m.OwnToken = m.context.NewTensor(ggml.F32, maxBatch)
	m.Pos = m.context.NewTensor(ggml.I32, maxBatch)
	m.CacheRow = m.context.NewTensor(ggml.I64, maxBatch)
	m.Memory.Outputs = m.context.NewTensor(ggml.I32, maxBatch)
	m.Mask = m.context.NewTensor(ggml.F16, maxBatch*ctx)
	inputs := []ggml.Tensor{m.Tokens, m.OwnToken, m.Pos, m.CacheRow, m.Memory.Outputs, m.Mask}
	if p.Window > 0 {
		m.WindowMask = m.context.NewTensor(ggml.F16, maxBatch*ctx)
		inputs = append(inputs, m.WindowMask)
	}
	if _, err = m.place(b, inputs...); err != nil {
		return nil, fmt.Errorf("inputs: %w", err)
	}
	host := b.Memory().Host()
	m.tokens = newShared[int32](m.Tokens, maxBatch, host)
	m.ownToken = newShared[float32](m.OwnToken, maxBatch, host)
	m.pos = newShared[int32](m.Pos, maxBatch, host)
	m.cacheRow = newShared[int64](m.CacheRow, maxBatch, host)
	m.outRows = newShared[int32](m.Memory.Outputs, maxBatch, host)
	m.mask = newShared[uint16](m.Mask, maxBatch*ctx, host)
	if p.Window > 0 {
		m.window = newShared[uint16](m.WindowMask, maxBatch*ctx, host)
	}

	for i := range m.Stream {
		if m.Stream[i], err = m.buffer(b, 4*p.Dim*maxBatch); err != nil {
			return nil, err
		}
	}
	m.Logits, err = m.buffer(b, 4*max(1, place.Shard.Vocab.Len())*m.outputs)
	return m, err
}

func (c CacheType) ggml() ggml.Type {
	if c == CacheQ8 {
		return ggml.Q8
	}
	return ggml.F16
}

// place allocates a zeroed buffer for the tensors and returns its size.
func (m *memory) place(b *ggml.Backend, xs ...ggml.Tensor) (int, error) {
	buffer, err := m.buffer(b, b.Memory().PlacedBytes(xs))
	if err != nil {
		return 0, err
	}
	for _, x := range xs {
		if err := buffer.Place(x); err != nil {
			return 0, err
		}
	}
	return buffer.Size(), nil
}

func (m *memory) buffer(b *ggml.Backend, nBytes int) (*ggml.Buffer, error) {
	buffer, err := b.Memory().NewBuffer(nBytes)
	if err != nil {
		return nil, err
	}
	buffer.Clear() // attention multiplies unused positions by zero: they must be numbers
	m.buffers = append(m.buffers, buffer)
	return buffer, nil
}

func (m *memory) close() {
	for _, b := range m.buffers {
		b.Close()
	}
	if m.context != nil {
		m.context.Close()
	}
}

// copyPrefix copies a slot's first keys and values to another.
func (m *memory) copyPrefix(c prefixCopy) {
	for _, caches := range [2][]ggml.Tensor{m.K, m.V} {
		for _, x := range caches {
			row := x.Bytes() / (m.slots * m.Context)
			x.Move(c.to*m.Context*row, c.from*m.Context*row, c.tokens*row)
		}
	}
}

func newShared[T any](t ggml.Tensor, n int, host bool) shared[T] {
	if host {
		return shared[T]{t, ggml.Host[T](t, n), true}
	}
	return shared[T]{t, make([]T, n), false}
}

// push makes the first n values visible to the backend.
func (s shared[T]) push(n int) {
	if !s.direct {
		s.tensor.Set(bytesOf(s.values[:n]), 0)
	}
}

// pull makes what the backend has computed visible in values.
func (s shared[T]) pull() {
	if !s.direct {
		s.tensor.Get(bytesOf(s.values), 0)
	}
}
