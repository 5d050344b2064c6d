package model

import (
	"fmt"
	"strings"

	"daisy/inference/gguf"
	"daisy/inference/plan"
)

// Place is where one rank stands in a plan: the layers of its stage, and what it
// holds of them.
type Place struct {
	Layers plan.Range
	Shard  plan.Shard
	Rank   int // among the ranks of the stage
	World  int // ranks of the stage
}

// PlaceOf finds a rank's place. The plan has been checked.
func PlaceOf(p plan.Plan, rank int) (place Place, stage int) {
	for i, s := range p.Stages {
		for j, r := range s.Ranks {
			if r == rank {
				return Place{s.Layers, s.Shards[j], j, len(s.Ranks)}, i
			}
		}
	}
	panic(fmt.Sprintf("a checked plan has no rank %d", rank))
}

// First tells whether the stage begins with the embedding.
func (p Place) First() bool { return p.Layers.Lo == 0 }

// Last tells whether the stage ends with the logits.
func (p Place) Last(m *Params) bool { return p.Layers.Hi == m.Layers }

// Holds tells whether the stage needs the tensor of that name in f: its layers',
// the embedding in the first, what makes logits in the last (the embedding, where
// the file has no output matrix), all others everywhere.
func (p Place) Holds(name string, m *Params, f *gguf.File) bool {
	if rest, ok := strings.CutPrefix(name, "blk."); ok {
		layer := 0
		_, err := fmt.Sscanf(rest, "%d.", &layer)
		return err == nil && p.Layers.Contains(layer)
	}
	switch {
	case strings.HasPrefix(name, "token_embd."):
		_, untied := f.Tensor("output.weight")
		return p.First() || p.Last(m) && !untied
	case strings.HasPrefix(name, "output"):
		return p.Last(m)
	}
	return true
}
