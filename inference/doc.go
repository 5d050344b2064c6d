// Package inference is the engine: it loads a GGUF model, whole or one rank's
// shard of it, and turns messages into streamed text.
//
// Callers are node, which loads an Engine on every rank of a group, and app,
// which calls Chat on rank 0. The other ranks call Follow and compute what rank
// 0 asks for; no tokens, text or sampling state exist there beyond the step that
// is running.
//
// An Engine is safe for concurrent use: requests queue, and one goroutine owns
// ggml. It never retries: when the group ends, every running and waiting request
// ends with an Interrupted and the group's cause, and the Engine must be closed.
// Another Engine of the same file can let those answers go on.
package inference
