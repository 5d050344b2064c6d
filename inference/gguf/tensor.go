package gguf

import (
	"fmt"
	"math"
	"slices"
)

// Tensor describes one tensor of a file. Its sizes were checked when the file was opened.
type Tensor struct {
	Name   string
	Shape  []int64 // 1 to 4 dimensions in ggml order: ne0, the contiguous one, first; not to be modified
	Type   Type
	Offset int64 // absolute byte offset in its part
	Part   int   // which part of a split model holds it; 0 in a model of one file
}

// Elements returns the product of the shape.
func (t Tensor) Elements() int64 {
	n := int64(1)
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// Rows returns the number of rows of ne0 elements.
func (t Tensor) Rows() int64 {
	n := int64(1)
	for _, d := range t.Shape[min(1, len(t.Shape)):] {
		n *= d
	}
	return n
}

// RowBytes returns the bytes of one row of ne0 elements.
func (t Tensor) RowBytes() int64 {
	if len(t.Shape) == 0 || !t.Type.Known() {
		return 0
	}
	return t.Shape[0] / t.Type.BlockSize() * t.Type.BlockBytes()
}

// Bytes returns the tensor's size in the file.
func (t Tensor) Bytes() int64 { return t.RowBytes() * t.Rows() }

// check validates shape and type, and returns the tensor's bytes.
func (t Tensor) check() (int64, error) {
	if !t.Type.Known() {
		return 0, fmt.Errorf("tensor %q has unknown %s", printable(t.Name), t.Type)
	}
	if n := len(t.Shape); n < 1 || n > MaxDims {
		return 0, fmt.Errorf("tensor %q has %d dimensions, 1 to %d are possible", printable(t.Name), n, MaxDims)
	}
	elements := int64(1)
	for _, d := range t.Shape {
		if d < 1 {
			return 0, fmt.Errorf("tensor %q has a dimension of %d", printable(t.Name), d)
		}
		if elements > math.MaxInt64/8/d {
			return 0, fmt.Errorf("tensor %q has an absurd shape %v", printable(t.Name), t.Shape)
		}
		elements *= d
	}
	if t.Shape[0]%t.Type.BlockSize() != 0 {
		return 0, fmt.Errorf("tensor %q has rows of %d elements, not whole blocks of %s", printable(t.Name), t.Shape[0], t.Type)
	}
	return t.Bytes(), nil
}

// Tensors returns all tensors in file order, part after part.
func (f *File) Tensors() []Tensor { return slices.Clone(f.tensors) }

// Tensor returns the tensor with this name.
func (f *File) Tensor(name string) (Tensor, bool) {
	i, ok := f.byName[name]
	if !ok {
		return Tensor{}, false
	}
	return f.tensors[i], true
}

// ReadTensorAt fills p with the bytes of t that start at off, counted from the tensor's own start, from whichever part
// holds it. It blocks on the disk. Reading past the tensor's end is an error and reads nothing.
func (f *File) ReadTensorAt(t Tensor, p []byte, off int64) error {
	if t.Part < 0 || t.Part >= len(f.parts) {
		return fmt.Errorf("%s: tensor %q is in part %d of %d", f.Path(), t.Name, t.Part+1, len(f.parts))
	}
	if n := t.Bytes(); off < 0 || off > n || int64(len(p)) > n-off {
		return fmt.Errorf("%s: tensor %q has %d bytes, cannot read %d at %d", f.Path(), t.Name, n, len(p), off)
	}
	part := f.parts[t.Part]
	if n, err := part.r.ReadAt(p, t.Offset+off); n < len(p) {
		return fmt.Errorf("%s: tensor %q: %w", part.path, t.Name, short(err))
	}
	return nil
}
