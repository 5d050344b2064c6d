package ggml

// #include "api.h"
import "C"

import (
	"fmt"
	"unsafe"
)

// Buffer is a run of memory in which tensors are placed one after the other.
type Buffer struct {
	b    *C.struct_ggml_backend_buffer
	kind BufferType
	next int
	size int
}

// NewBuffer allocates nBytes.
func (t BufferType) NewBuffer(nBytes int) (*Buffer, error) {
	b := C.ggml_backend_buft_alloc_buffer(t.t, C.size_t(nBytes))
	if b == nil {
		return nil, fmt.Errorf("%d bytes of %s memory: %w", nBytes, C.GoString(C.ggml_backend_buft_name(t.t)), ErrNoMemory)
	}
	return &Buffer{b: b, kind: t, size: nBytes}, nil
}

// WrapHost makes a buffer of CPU memory that stays the caller's, for example a
// mapped file. It must outlive the buffer.
func WrapHost(mem []byte, t BufferType) (*Buffer, error) {
	b := C.ggml_backend_cpu_buffer_from_ptr(ptr(mem), C.size_t(len(mem)))
	if b == nil {
		return nil, fmt.Errorf("wrapping %d bytes: %w", len(mem), ErrNoMemory)
	}
	return &Buffer{b: b, kind: t, size: len(mem)}, nil
}

// Weights marks the buffer as holding weights, which ggml may treat specially.
func (b *Buffer) Weights() {
	C.ggml_backend_buffer_set_usage(b.b, C.GGML_BACKEND_BUFFER_USAGE_WEIGHTS)
}

// Size in bytes.
func (b *Buffer) Size() int { return b.size }

// Place gives x the next free aligned place.
func (b *Buffer) Place(x Tensor) error {
	off := align(b.next, b.kind.Alignment())
	if err := b.PlaceAt(x, off); err != nil {
		return err
	}
	b.next = off + b.kind.TensorBytes(x)
	return nil
}

// PlaceAt puts x at byte off, which is aligned for the buffer's memory.
func (b *Buffer) PlaceAt(x Tensor, off int) error {
	n := b.kind.TensorBytes(x)
	if off < 0 || off+n > b.size {
		return fmt.Errorf("placing %d bytes at %d of %d: %w", n, off, b.size, ErrNoMemory)
	}
	addr := unsafe.Add(C.ggml_backend_buffer_get_base(b.b), off)
	if s := C.ggml_backend_tensor_alloc(b.b, x.t, addr); s != C.GGML_STATUS_SUCCESS {
		return fmt.Errorf("ggml tensor allocation: %s", C.GoString(C.ggml_status_to_string(s)))
	}
	return nil
}

// Clear zeroes the memory.
func (b *Buffer) Clear() { C.ggml_backend_buffer_clear(b.b, 0) }

// Close frees the memory; its tensors must not be used any more.
func (b *Buffer) Close() {
	if b != nil && b.b != nil {
		C.ggml_backend_buffer_free(b.b)
		b.b = nil
	}
}

// PlacedBytes is the size of a buffer that holds all of xs by Place.
func (t BufferType) PlacedBytes(xs []Tensor) int {
	n := 0
	for _, x := range xs {
		n = align(n, t.Alignment()) + t.TensorBytes(x)
	}
	return n
}

func align(n, to int) int { return (n + to - 1) / to * to }

// Scratch gives graphs their memory for intermediate results. Graphs that never
// run at the same time share it.
type Scratch struct{ a *C.struct_ggml_gallocr }

// NewScratch makes an empty Scratch.
func (t BufferType) NewScratch() *Scratch { return &Scratch{C.ggml_gallocr_new(t.t)} }

// Place gives every tensor of g that has no memory yet its place. grown reports
// that the memory moved, so that graphs placed before must be thrown away.
func (s *Scratch) Place(g Graph) (grown bool, err error) {
	before := s.Bytes()
	// ggml_gallocr_alloc_graph alone would reuse the last graph's places for one
	// of the same node count and sizes, whatever its topology.
	if !bool(C.ggml_gallocr_reserve(s.a, g.g)) || !bool(C.ggml_gallocr_alloc_graph(s.a, g.g)) {
		return true, fmt.Errorf("scratch for a graph: %w", ErrNoMemory)
	}
	return s.Bytes() != before, nil
}

// Bytes that the scratch holds.
func (s *Scratch) Bytes() int { return int(C.ggml_gallocr_get_buffer_size(s.a, 0)) }

// Close frees the memory.
func (s *Scratch) Close() {
	if s.a != nil {
		C.ggml_gallocr_free(s.a)
		s.a = nil
	}
}
