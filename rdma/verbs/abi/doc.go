// Package abi is the machine's verbs library as a provider.Provider:
// librdma.dylib on macOS, libibverbs.so.1 on Linux, loaded at run time, so that
// a program runs where there is none. No C is compiled: calls go through purego
// and the structures of layout.go are pure data, which a test compares with the
// system's own headers.
//
// What is exported by name is looked up by name; dlsym finds the default
// version of each, on Linux IBVERBS_1.1. The three calls of the data path are
// inline functions in C headers: they jump through a table inside the context
// (see layout.go).
//
// What posts and polls hand to the library lies in memory outside Go's heap,
// made once for each queue pair and completion queue, so those calls allocate
// nothing and the garbage collector sees nothing.
//
// Control calls are serialised for each context and may block: see package
// provider. They all run to their end; a wedged driver holds its caller for
// ever, so callers that must not hang make them on a goroutine of their own.
package abi
