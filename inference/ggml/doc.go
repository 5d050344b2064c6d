// Package ggml binds the tensor library ggml: contexts, graphs, backends and
// buffers, and of the operations those that Daisy's architectures use.
//
// Its only caller is package inference and its model code. Nothing here is safe
// for concurrent use: one goroutine owns a Backend and all that belongs to
// it, on whatever thread it runs. Memory is C's: whoever makes a thing frees it, and
// tensors live as long as their Context. ggml aborts the process on shapes that
// do not fit, so callers check what comes from a file before they build a
// graph; what ggml reports by status comes back as an error.
//
// The C source is linked from the Go module of the ollama project, or with the
// build tag system_ggml from the machine's own library. api.h declares what is
// used of it.
package ggml
