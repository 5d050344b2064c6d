package calibrate

import (
	"math"

	"daisy/inference/ggml"

	"golang.org/x/sys/unix"
)

// stream is how many bytes of the workload's matrices a second pass through products
// with one column: all of them or, of a large model, of each shape its part.
func (p *probe) stream(w *Workload) (float64, error) {
	part := min(1, p.options.part(), streamBytes/w.Bytes())
	var ms []Matrix
	nBytes := 0
	for _, m := range w.Matrices {
		for range min(maxMatrices, max(1, int(math.Round(m.Count*part)))) {
			ms = append(ms, m)
			nBytes += m.bytes()
		}
	}
	seconds, err := p.products(ms, 1)
	return float64(nBytes) / seconds, err
}

// compute is how many operations a second products with many columns reach, two
// for a multiply-add: each shape's by its part of the layers.
func (p *probe) compute(w *Workload) (float64, error) {
	var ms []Matrix
	for _, m := range w.Matrices {
		if m.InLayer {
			ms = append(ms, m)
		}
	}
	most := 0.0
	for _, m := range ms {
		most = max(most, m.Count)
	}
	operations := 0.0
	for _, m := range ms { // in the proportion in which the model has them, up to a few
		for range int(math.Round(m.Count*sampled/most)) - 1 {
			ms = append(ms, m)
		}
	}
	for _, m := range ms {
		operations += 2 * float64(m.Columns) * float64(m.Rows) * columns
	}
	seconds, err := p.products(ms, columns)
	return operations / seconds, err
}

// products is what the products of matrices with x columns take. The matrices lie in
// the memory in which the engine would have them. They are zeros, which take the time
// that any numbers take.
func (p *probe) products(ms []Matrix, x int) (seconds float64, err error) {
	nodes := 3*len(ms) + 1 // a graph has as much room for inputs as for operations
	c, err := ggml.NewContext(nodes, 1, nodes)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	g := c.NewGraph(nodes)
	plain := p.backend.Memory()
	packed, can := p.backend.Repacked()
	in := map[int]ggml.Tensor{}
	var inputs []ggml.Tensor
	weights := map[ggml.BufferType][]ggml.Tensor{}
	for _, m := range ms {
		kind := plain
		if can && packed.Multiplies(m.Type, m.Columns, m.Rows) {
			kind = packed
		}
		w := c.NewTensor(m.Type, m.Columns, m.Rows)
		weights[kind] = append(weights[kind], w)
		if !in[m.Columns].Valid() {
			in[m.Columns] = c.NewTensor(ggml.F32, m.Columns, x)
			inputs = append(inputs, in[m.Columns])
		}
		g.Add(c.MulMat(w, in[m.Columns]))
	}
	for kind, ws := range weights {
		buffer, free, err := p.room(kind, kind == plain, ws)
		if err != nil {
			return 0, err
		}
		defer free()
		buffer.Weights()
		for _, w := range ws {
			if err := buffer.Place(w); err != nil {
				return 0, err
			}
			w.Set(make([]byte, w.Bytes()), 0)
		}
	}
	buffer, err := p.zeroed(inputs...)
	if err != nil {
		return 0, err
	}
	defer buffer.Close()
	return p.placed(g, 1)
}

// room is memory for weights of the kind that the engine has: where it need not
// change them and holds all of the model, it maps the file, whose pages are small.
func (p *probe) room(kind ggml.BufferType, plain bool, ws []ggml.Tensor) (_ *ggml.Buffer, free func(), err error) {
	n := kind.PlacedBytes(ws)
	if !plain || !kind.Host() || p.options.part() < 1 {
		b, err := kind.NewBuffer(n)
		return b, b.Close, err
	}
	pages, err := smallPages(n)
	if err != nil {
		return nil, nil, err
	}
	b, err := ggml.WrapHost(pages, kind)
	if err != nil {
		_ = unix.Munmap(pages)
		return nil, nil, err
	}
	return b, func() {
		b.Close()
		_ = unix.Munmap(pages)
	}, nil
}

// launch is what a graph takes in which next to nothing is computed.
func (p *probe) launch() (float64, error) {
	c, err := ggml.NewContext(2, 1, 2)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	x := c.NewTensor(ggml.F32, 8)
	inputs, err := p.zeroed(x)
	if err != nil {
		return 0, err
	}
	defer inputs.Close()
	g := c.NewGraph(2)
	g.Add(c.Scale(x, 2))
	return p.placed(g, launches)
}

// zeroed places inputs in a buffer of their own.
func (p *probe) zeroed(xs ...ggml.Tensor) (*ggml.Buffer, error) {
	memory := p.backend.Memory()
	buffer, err := memory.NewBuffer(memory.PlacedBytes(xs))
	if err != nil {
		return nil, err
	}
	buffer.Clear()
	for _, x := range xs {
		if err := buffer.Place(x); err != nil {
			buffer.Close()
			return nil, err
		}
	}
	return buffer, nil
}

// placed times a graph after giving it memory for what it computes.
func (p *probe) placed(g ggml.Graph, atOnce int) (float64, error) {
	scratch := p.backend.Memory().NewScratch()
	defer scratch.Close()
	if _, err := scratch.Place(g); err != nil {
		return 0, err
	}
	return p.time(g, atOnce)
}
