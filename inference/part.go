package inference

import (
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
	buffer *ggml.Buffer // where it lies, from its byte offset on
	offset int
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

// span is a stretch of a tensor's bytes.
type span struct{ off, n int64 }

// layout is where a piece lies in its tensor: the same spans, in ascending order,
// in each of blocks stretches of stride bytes.
type layout struct {
	blocks, stride int64
	spans          []span
}

// layout follows from the cut: dimension Dim divides each block that it spans.
func (p piece) layout() layout {
	if p.whole() {
		return layout{1, p.file.Bytes(), []span{{0, p.file.Bytes()}}}
	}
	dim, shape := p.cut.Dim, p.spec.Shape
	blocks := int64(1)
	for _, n := range shape[dim+1:] {
		blocks *= int64(n)
	}
	l := layout{blocks: blocks, stride: p.file.Bytes() / blocks}
	for _, r := range p.cut.Ranges {
		// A range of ne0 begins and ends with a quantisation block.
		l.spans = append(l.spans, span{l.stride * int64(r.Lo) / int64(shape[dim]), l.stride * int64(r.Len()) / int64(shape[dim])})
	}
	return l
}

// bytes that the piece has.
func (l layout) bytes() int64 {
	n := int64(0)
	for _, s := range l.spans {
		n += s.n
	}
	return l.blocks * n
}

// each calls f with the spans of the tensor that are the piece's bytes from lo to
// hi-1, in order, until f fails.
func (l layout) each(lo, hi int64, f func(span) error) error {
	own := l.bytes() / max(1, l.blocks)
	for lo < hi {
		block, at := lo/own, lo%own
		for _, s := range l.spans {
			if at >= s.n {
				at -= s.n
				continue
			}
			n := min(s.n-at, hi-lo)
			if err := f(span{block*l.stride + s.off + at, n}); err != nil {
				return err
			}
			if lo += n; lo == hi {
				return nil
			}
			at = 0
		}
	}
	return nil
}
