package model

import (
	"slices"

	"daisy/inference/plan"
)

// Rule says which part of a tensor a rank holds.
type Rule int

// The rules. Rows are ne1, columns ne0; a vector's elements count as rows. A
// stack of matrices (ne2) is cut alike in each of them.
const (
	Replicated  Rule = iota
	HeadRows         // rows of the rank's query heads
	KVHeadRows       // rows of the rank's KV heads
	HeadColumns      // columns of the rank's query heads
	Heads            // one row for each of the rank's query heads
	HeadStack        // matrices (ne2) of the rank's query heads
	QKVRows          // rows of its query heads, then of its KV heads in K, then in V
	FFNRows          // rows of the rank's feed-forward columns
	GateUpRows       // FFNRows in the gate, then in the up matrix below it
	FFNColumns       // columns of the rank's feed-forward columns
	VocabRows        // rows of the rank's vocabulary
)

// Feed-forward blocks of another width than Params.FFN are cut in proportion.

// Use says what the forward pass does with a tensor, which decides the memory
// it may lie in.
type Use int

// The uses.
const (
	Matrix  Use = iota // only multiplied
	Lookup             // rows are looked up, and it may be multiplied too
	Vector             // elementwise; F32 in the file
	Experts            // a stack of matrices (ne2), of which each token chooses some
	Stack              // a stack of matrices, each multiplied with its part of the other side
)

// Spec describes one tensor of an architecture.
type Spec struct {
	Name     string
	Shape    []int // whole tensor, ggml order
	Rule     Rule
	Use      Use
	Optional bool
	// Join names what this tensor may be part of in memory: matrices of a layer
	// that follow each other, are multiplied with the same vector and become one
	// (their rows on top of each other) where that saves time.
	Join string
}

func (s Spec) fits(shape []int64) bool {
	return slices.EqualFunc(s.Shape, shape, func(a int, b int64) bool { return int64(a) == b })
}

// Cut is the part of a tensor that a rank holds: ranges of dimension Dim in
// ascending order, or all of it for Dim -1.
type Cut struct {
	Dim    int
	Ranges []plan.Range
}

// Len is how much of dimension Dim the rank holds.
func (c Cut) Len() int {
	n := 0
	for _, r := range c.Ranges {
		n += r.Len()
	}
	return n
}

// Rows is how many rows of a matrix the cut leaves.
func (c Cut) Rows(s Spec) int { return s.ShardShape(c)[1] }

// Cut applies the rule to a shard.
func (s Spec) Cut(p *Params, shard plan.Shard) Cut {
	rows := min(1, len(s.Shape)-1) // ne1 of a matrix, ne0 of a vector
	cut := func(dim int, r ...plan.Range) Cut { return Cut{dim, r} }
	heads, kv := shard.Heads.Scale(p.HeadDim), shard.KVHeads.Scale(p.HeadDim)
	switch s.Rule {
	case HeadRows: // a head may have more rows than HeadDim: keys and values together
		return cut(rows, shard.Heads.Scale(s.Shape[rows]/p.Heads))
	case KVHeadRows:
		return cut(rows, kv)
	case HeadColumns:
		return cut(0, shard.Heads.Scale(p.valueDim()))
	case Heads:
		return cut(rows, shard.Heads)
	case HeadStack:
		return cut(2, shard.Heads)
	case QKVRows:
		k := p.Heads * p.HeadDim // where K begins
		return cut(rows, heads, shift(kv, k), shift(kv, k+p.KVHeads*p.HeadDim))
	case FFNRows:
		return cut(rows, p.ffn(shard.FFN, s.Shape[rows]))
	case GateUpRows:
		return cut(rows, shard.FFN, shift(shard.FFN, p.FFN))
	case FFNColumns:
		return cut(0, p.ffn(shard.FFN, s.Shape[0]))
	case VocabRows:
		return cut(rows, shard.Vocab)
	}
	return Cut{Dim: -1}
}

func shift(r plan.Range, by int) plan.Range { return plan.Range{Lo: r.Lo + by, Hi: r.Hi + by} }

// ShardShape is the shape of what the cut leaves.
func (s Spec) ShardShape(c Cut) []int {
	shape := slices.Clone(s.Shape)
	if c.Dim >= 0 {
		shape[c.Dim] = c.Len()
	}
	return shape
}
