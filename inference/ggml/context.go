package ggml

// #include <stdlib.h>
// #include "api.h"
import "C"

import (
	"errors"
	"fmt"
	"unsafe"
)

// ErrNoMemory: an allocation failed; give the engine a smaller context or shard.
var ErrNoMemory = errors.New("out of memory")

// Context holds tensors' descriptions (not their data) and graphs.
type Context struct {
	c    *C.struct_ggml_context
	held []unsafe.Pointer // C memory that operations refer to
}

// Tensor refers to one tensor of a Context. Shapes are in ggml order: ne0 is the
// length of a row. The zero Tensor means absent.
type Tensor struct{ t *C.struct_ggml_tensor }

// Graph is a list of operations that run in order.
type Graph struct{ g *C.struct_ggml_cgraph }

// NewContext has room for tensors tensors and for graphs graphs of at most
// nodes nodes each. ggml aborts when more are made.
func NewContext(tensors, graphs, nodes int) (*Context, error) {
	size := C.size_t(tensors)*C.ggml_tensor_overhead() +
		C.size_t(graphs)*(C.ggml_graph_overhead_custom(C.size_t(nodes), false)+256)
	c := C.ggml_init(C.struct_ggml_init_params{mem_size: size, no_alloc: true})
	if c == nil {
		return nil, fmt.Errorf("ggml context for %d tensors: %w", tensors, ErrNoMemory)
	}
	return &Context{c: c}, nil
}

// Close frees the context; its tensors and graphs must not be used any more.
func (c *Context) Close() {
	if c.c != nil {
		C.ggml_free(c.c)
		c.c = nil
		for _, p := range c.held {
			C.free(p)
		}
	}
}

// NewTensor makes a tensor of one to four dimensions without data.
func (c *Context) NewTensor(t Type, ne ...int) Tensor {
	var dims [4]C.int64_t
	for i, n := range ne {
		dims[i] = C.int64_t(n)
	}
	return Tensor{C.ggml_new_tensor(c.c, uint32(t), C.int(len(ne)), &dims[0])}
}

// NewGraph makes an empty graph for at most nodes nodes.
func (c *Context) NewGraph(nodes int) Graph {
	return Graph{C.ggml_new_graph_custom(c.c, C.size_t(nodes), false)}
}

// Add appends the operations that t needs and are not in the graph yet.
func (g Graph) Add(t Tensor) { C.ggml_build_forward_expand(g.g, t.t) }

// Nodes counts the operations.
func (g Graph) Nodes() int { return int(C.ggml_graph_n_nodes(g.g)) }

// Unsupported returns the name of the first operation that b cannot run, or "".
func (g Graph) Unsupported(b *Backend) string {
	for i := range g.Nodes() {
		n := C.ggml_graph_node(g.g, C.int(i))
		if !bool(C.ggml_backend_dev_supports_op(b.dev, n)) {
			return C.GoString(C.ggml_op_desc(n))
		}
	}
	return ""
}

// Valid tells a tensor from the zero Tensor.
func (t Tensor) Valid() bool { return t.t != nil }

// Bytes is the size of the tensor's data.
func (t Tensor) Bytes() int { return int(C.ggml_nbytes(t.t)) }

// Set copies data into the tensor, starting at its byte off.
func (t Tensor) Set(data []byte, off int) {
	if len(data) > 0 {
		C.ggml_backend_tensor_set(t.t, ptr(data), C.size_t(off), C.size_t(len(data)))
	}
}

// Get copies the tensor's bytes from off on into data.
func (t Tensor) Get(data []byte, off int) {
	if len(data) > 0 {
		C.ggml_backend_tensor_get(t.t, ptr(data), C.size_t(off), C.size_t(len(data)))
	}
}

// Move copies n of the tensor's bytes from byte src to byte dst; the two ranges
// do not overlap.
func (t Tensor) Move(dst, src, n int) {
	buf := make([]byte, min(n, 1<<20))
	for done := 0; done < n; done += len(buf) {
		part := buf[:min(len(buf), n-done)]
		t.Get(part, src+done)
		t.Set(part, dst+done)
	}
}

// Host returns the tensor's own memory, without a copy, as n values of type T.
// Only for tensors in host buffers, and no longer than those live.
func Host[T any](t Tensor, n int) []T {
	return unsafe.Slice((*T)(C.ggml_get_data(t.t)), n)
}

func ptr(b []byte) unsafe.Pointer { return unsafe.Pointer(&b[0]) }
