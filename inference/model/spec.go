package model

import (
	"slices"

	"daisy/inference/plan"
)

// Rule says which part of a tensor a rank holds.
type Rule int

// The rules. Rows are ne1, columns ne0; a vector's elements count as rows.
const (
	Replicated  Rule = iota
	HeadRows         // rows of the rank's query heads
	KVHeadRows       // rows of the rank's KV heads
	HeadColumns      // columns of the rank's query heads
	FFNRows          // rows of the rank's feed-forward columns
	FFNColumns       // columns of the rank's feed-forward columns
	VocabRows        // rows of the rank's vocabulary
)

// Use says what the forward pass does with a tensor, which decides the memory
// it may lie in.
type Use int

// The uses.
const (
	Matrix Use = iota // only multiplied
	Lookup            // rows are looked up, and it may be multiplied too
	Vector            // elementwise; F32 in the file
)

// Spec describes one tensor of an architecture.
type Spec struct {
	Name     string
	Shape    []int // whole tensor, ggml order
	Rule     Rule
	Use      Use
	Optional bool
}

func (s Spec) fits(shape []int64) bool {
	return slices.EqualFunc(s.Shape, shape, func(a int, b int64) bool { return int64(a) == b })
}

// Cut is the part of a tensor that a rank holds: a range of dimension Dim, or
// all of it for Dim -1.
type Cut struct {
	Dim   int
	Range plan.Range
}

// Cut applies the rule to a shard.
func (s Spec) Cut(p *Params, shard plan.Shard) Cut {
	rows := len(s.Shape) - 1 // ne1 of a matrix, ne0 of a vector
	switch s.Rule {
	case HeadRows:
		return Cut{rows, shard.KVHeads.Scale(p.Group() * p.HeadDim)}
	case KVHeadRows:
		return Cut{rows, shard.KVHeads.Scale(p.HeadDim)}
	case HeadColumns:
		return Cut{0, shard.KVHeads.Scale(p.Group() * p.HeadDim)}
	case FFNRows:
		return Cut{rows, shard.FFN}
	case FFNColumns:
		return Cut{0, shard.FFN}
	case VocabRows:
		return Cut{rows, shard.Vocab}
	}
	return Cut{Dim: -1}
}

// ShardShape is the shape of what the cut leaves.
func (s Spec) ShardShape(c Cut) []int {
	shape := slices.Clone(s.Shape)
	if c.Dim >= 0 {
		shape[c.Dim] = c.Range.Len()
	}
	return shape
}
