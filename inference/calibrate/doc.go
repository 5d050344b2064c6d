// Package calibrate measures a machine with ggml itself, in a second or two, so
// that package plan can predict how fast a model will run on it.
//
// A Workload says what a model asks for: which types its weights have, in
// matrices of which shape, and how wide a layer's vectors are. Probe measures on
// this machine, with synthetic weights of those types and shapes: how fast they
// stream through a product with one column, how fast products with many columns
// are, what launching and awaiting a graph costs, and what a layer takes besides
// its matrices. No model is loaded; of its file the header is read.
//
// Ranks that share a machine share its memory, and maybe its cores: they probe at
// the same time, which the caller arranges through meet. Each part of the probe
// then takes a fixed time, not a fixed work, on all of them.
//
// A Probe blocks its goroutine, which it locks to a thread, and takes about
// Duration for each of four parts, and as much to prepare. It allocates about 400 MB
// or as much as the largest layer takes, and frees it.
package calibrate
