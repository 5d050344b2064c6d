package ggml

// #include <stdlib.h>
// #include "api.h"
//
// typedef struct ggml_backend_buffer_type **(*get_extra_bufts)(struct ggml_backend_device *device);
//
// // The first of the device's extra buffer types named so, or NULL.
// static struct ggml_backend_buffer_type *extra_buffer_type(struct ggml_backend_device *dev, const char *name) {
//   get_extra_bufts get = (get_extra_bufts)ggml_backend_reg_get_proc_address(
//       ggml_backend_dev_backend_reg(dev), "ggml_backend_dev_get_extra_bufts");
//   if (!get) return 0;
//   for (struct ggml_backend_buffer_type **t = get(dev); t && *t; t++) {
//     const char *a = ggml_backend_buft_name(*t), *b = name;
//     while (*a && *a == *b) a++, b++;
//     if (*a == *b) return *t;
//   }
//   return 0;
// }
import "C"

import (
	"fmt"
	"unsafe"
)

// Backend computes graphs on one device.
type Backend struct {
	b    *C.struct_ggml_backend
	dev  *C.struct_ggml_backend_device
	pool *C.struct_ggml_threadpool
}

// NewCPU makes a CPU backend with a thread pool of its own that lives as long.
// poll (0 to 100) is how long idle workers spin before they sleep: 0 where cores
// are shared with others.
func NewCPU(threads, poll int) (*Backend, error) {
	b := C.ggml_backend_cpu_init()
	if b == nil {
		return nil, fmt.Errorf("ggml CPU backend: %w", ErrNoMemory)
	}
	var p C.struct_ggml_threadpool_params
	C.ggml_threadpool_params_init(&p, C.int(threads))
	p.poll = C.uint32_t(poll)
	pool := C.ggml_threadpool_new(&p)
	if pool == nil {
		C.ggml_backend_free(b)
		return nil, fmt.Errorf("ggml thread pool: %w", ErrNoMemory)
	}
	C.ggml_backend_cpu_set_n_threads(b, C.int(threads))
	C.ggml_backend_cpu_set_threadpool(b, pool)
	return &Backend{b, C.ggml_backend_get_device(b), pool}, nil
}

// NewGPU makes a backend on the machine's GPU; nil where there is none or ggml
// was compiled without (with Metal on a Mac).
func NewGPU() *Backend {
	b := C.ggml_backend_init_by_type(C.GGML_BACKEND_DEVICE_TYPE_GPU, nil)
	if b == nil {
		return nil
	}
	return &Backend{b: b, dev: C.ggml_backend_get_device(b)}
}

// Close stops the threads and frees the backend, after all its buffers.
func (b *Backend) Close() {
	if b.b == nil {
		return
	}
	C.ggml_backend_free(b.b)
	if b.pool != nil {
		C.ggml_threadpool_free(b.pool)
	}
	b.b = nil
}

// Name of the backend: "CPU", "Metal".
func (b *Backend) Name() string { return C.GoString(C.ggml_backend_name(b.b)) }

// Compute runs the graph and waits for its end.
func (b *Backend) Compute(g Graph) error {
	if s := C.ggml_backend_graph_compute(b.b, g.g); s != C.GGML_STATUS_SUCCESS {
		return fmt.Errorf("ggml compute: %s", C.GoString(C.ggml_status_to_string(s)))
	}
	return nil
}

// BufferType is a kind of memory.
type BufferType struct {
	t   *C.struct_ggml_backend_buffer_type
	dev *C.struct_ggml_backend_device
}

// Memory is the backend's plain kind of memory.
func (b *Backend) Memory() BufferType {
	return BufferType{C.ggml_backend_get_default_buffer_type(b.b), b.dev}
}

// Repacked is memory that reorders quantised matrices for faster kernels as they
// are written; ok is false when ggml was compiled without it. Only Set of a
// whole tensor may write there, and nothing can read it back.
func (b *Backend) Repacked() (t BufferType, ok bool) {
	name := C.CString("CPU_REPACK")
	defer C.free(unsafe.Pointer(name))
	p := C.extra_buffer_type(b.dev, name)
	return BufferType{p, b.dev}, p != nil
}

// Host tells whether the CPU can use the memory directly.
func (t BufferType) Host() bool { return bool(C.ggml_backend_buft_is_host(t.t)) }

// Alignment in bytes of tensors in this memory.
func (t BufferType) Alignment() int { return int(C.ggml_backend_buft_get_alignment(t.t)) }

// TensorBytes is what the tensor takes in this memory, without alignment.
func (t BufferType) TensorBytes(x Tensor) int {
	return int(C.ggml_backend_buft_get_alloc_size(t.t, x.t))
}

// Multiplies tells whether a matrix of type w with ne0 columns and ne1 rows can
// be multiplied out of this memory.
func (t BufferType) Multiplies(w Type, ne0, ne1 int) bool {
	return t.supports(func(c *Context) (a, op Tensor) {
		a = c.NewTensor(w, ne0, ne1)
		return a, c.MulMat(a, c.NewTensor(F32, ne0, 1))
	})
}

// MultipliesChosen tells whether a stack of ne2 matrices, of which each token
// chooses some, can be multiplied out of this memory.
func (t BufferType) MultipliesChosen(w Type, ne0, ne1, ne2 int) bool {
	return t.supports(func(c *Context) (a, op Tensor) {
		a = c.NewTensor(w, ne0, ne1, ne2)
		return a, c.MulMatID(a, c.NewTensor(F32, ne0, 1, 1), c.NewTensor(I32, 1, 1))
	})
}

// supports asks the backend about an operation on weights in this memory.
func (t BufferType) supports(make func(c *Context) (weights, op Tensor)) bool {
	c, err := NewContext(4, 0, 0)
	if err != nil {
		return false
	}
	defer c.Close()
	a, op := make(c)
	buffer, err := t.NewBuffer(t.PlacedBytes([]Tensor{a})) // never touched, so it costs no memory
	if err != nil {
		return false
	}
	defer buffer.Close()
	return buffer.Place(a) == nil && bool(C.ggml_backend_dev_supports_op(t.dev, op.t))
}
