package inference

import (
	"fmt"

	"daisy/inference/ggml"
	"daisy/inference/gguf"
	"daisy/inference/model"
)

// part is one tensor on its way from the file into memory: this rank's piece of
// one of the file's tensors, or of several that are joined, rows below rows.
type part struct {
	kind   ggml.Type
	shape  []int
	pieces []piece
	tensor ggml.Tensor
	bytes  int
}

// piece is what a rank holds of one tensor of the file.
type piece struct {
	spec model.Spec
	file gguf.Tensor
	cut  model.Cut
}

func newPart(s model.Spec, t gguf.Tensor, c model.Cut) *part {
	return &part{kind: ggml.Type(t.Type), shape: s.ShardShape(c), pieces: []piece{{s, t, c}}}
}

// name is the tensor's in the file; of several, the first one's.
func (p *part) name() string { return p.pieces[0].spec.Name }

// join takes the pieces of q in, if the architecture lets them be one matrix.
func (p *part) join(q *part) bool {
	a, b := p.pieces[0].spec, q.pieces[0].spec
	if a.Join == "" || a.Join != b.Join || p.kind != q.kind || p.shape[0] != q.shape[0] {
		return false
	}
	p.shape = []int{p.shape[0], p.shape[1] + q.shape[1]}
	p.pieces = append(p.pieces, q.pieces...)
	return true
}

// whole tells whether the part is a tensor of the file as it is.
func (p *part) whole() bool { return len(p.pieces) == 1 && p.pieces[0].whole() }

func (p piece) whole() bool { return p.cut.Dim < 0 || p.cut.Len() == p.spec.Shape[p.cut.Dim] }

// read returns the bytes of the part.
func (p *part) read(f *gguf.File) ([]byte, error) {
	data := make([]byte, p.bytes)
	rest := data
	for i, c := range p.pieces {
		n := len(rest)
		if i < len(p.pieces)-1 {
			n = p.kind.RowBytes(p.shape[0]) * c.cut.Rows(c.spec)
		}
		if err := c.read(f, rest[:n]); err != nil {
			return nil, fmt.Errorf("tensor %q: %w", c.spec.Name, err)
		}
		rest = rest[n:]
	}
	return data, nil
}

// read fills data with the bytes of the piece.
func (p piece) read(f *gguf.File, data []byte) error {
	dim, shape := p.cut.Dim, p.spec.Shape
	switch {
	case p.whole():
		return f.ReadTensorAt(p.file, data, 0)
	case dim == 0 && len(shape) > 1:
		return p.readColumns(f, data)
	}
	// In each of the blocks that the cut dimension divides, the ranges' steps.
	blocks := 1
	for _, n := range shape[dim+1:] {
		blocks *= n
	}
	step := int(p.file.Bytes()) / (blocks * shape[dim])
	rest := data
	for b := range blocks {
		for _, r := range p.cut.Ranges {
			n := r.Len() * step
			if err := f.ReadTensorAt(p.file, rest[:n], int64(b*shape[dim]+r.Lo)*int64(step)); err != nil {
				return err
			}
			rest = rest[n:]
		}
	}
	return nil
}

// readColumns fills data with the piece's columns of every row. It reads whole
// rows, a chunk at a time: the pages are read anyhow.
func (p piece) readColumns(f *gguf.File, data []byte) error {
	kind, row := ggml.Type(p.file.Type), int(p.file.RowBytes())
	rows := int(p.file.Rows())
	chunk := make([]byte, max(1, chunkBytes/row)*row)
	for first := 0; first < rows; {
		got := min(rows-first, len(chunk)/row)
		if err := f.ReadTensorAt(p.file, chunk[:got*row], int64(first)*int64(row)); err != nil {
			return err
		}
		for i := range got {
			for _, r := range p.cut.Ranges {
				n := kind.RowBytes(r.Len())
				copy(data[:n], chunk[i*row+kind.RowBytes(r.Lo):])
				data = data[n:]
			}
		}
		first += got
	}
	return nil
}

const chunkBytes = 1 << 20
