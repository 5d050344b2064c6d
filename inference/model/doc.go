// Package model holds the architectures: for each, one file that reads from top
// to bottom as its metadata keys, its tensors with the rule by which ranks share
// them, and its forward pass.
//
// An architecture describes; it holds no data. Package inference loads the
// tensors that Specs names and hands them to Build, which writes the forward
// pass into a Builder. The Builder cuts the pass into segments where ranks meet,
// so an architecture never knows how many ranks there are.
package model
