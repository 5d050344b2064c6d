// Package provider is the contract between the verbs transport and whatever
// moves its bytes: the machine's own verbs library (package abi) or a fake
// that enforces Apple's rules (package fake). It has the calls of libibverbs
// that RDMA over Thunderbolt needs, in Go terms, and no policy but the choices
// of choices.go, each of which only Apple hardware can settle.
//
// A program opens a device, registers one slab of memory on its protection
// domain, makes completion queues and queue pairs, brings those to
// ready-to-send with what the peer told about itself, and then posts slots and
// polls completions.
//
// Concurrency. Calls that make, change or release something are serialised by
// the implementation for each context and may block: Modify to ready-to-receive
// resolves the peer's address and has been seen to take a minute, so it belongs
// on a goroutine of its own, watched, and is never retried blindly. On the data
// path nothing is locked: at most one goroutine at a time calls PostSend of a
// queue pair, one PostRecv, and one Poll of a completion queue; those three may
// be different. None of them may run while their object is being destroyed.
// The data path allocates nothing and never blocks.
//
// A provider gives no sign of a dead peer: no completion, no event, no error.
// Whoever waits needs a deadline and another way to know that the peer lives.
//
// A fault inside the machine's library, such as a post after its cable was
// pulled, kills the process: Go cannot recover it.
package provider
