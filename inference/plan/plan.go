// Package plan decides which rank holds what of a model, and predicts how fast
// that will be. Everything in it is a pure function of a model's header, the
// nodes and the links between them: the same question has the same answer, nothing
// blocks, and all of it may be called from several goroutines.
//
// Choose looks for the best plan, Plan.Predict and Plan.Memory say what any plan
// means, Node.Calibrate fits the cost model (cost.go) to measurements. docs/plans.md
// describes it from outside.
//
// The node that leads makes the plan and sends it to the others as JSON. They call
// Plan.Check, which computes with whole numbers alone, before they believe it. They
// do not plan again: processors of different kinds round sums differently, which
// could tip a choice between plans that are equally good. Shape.Plan, which deals
// out by given shares, only divides and compares, so it is alike everywhere.
package plan

import (
	"encoding/json"
	"fmt"
)

// MaxRanks bounds the ranks of a plan.
const MaxRanks = 32

// MaxPlanBytes bounds the JSON of a plan: MaxRanks ranks need less.
const MaxPlanBytes = 32 << 10

// Kind names how a plan uses its ranks.
type Kind string

// The kinds of plan.
const (
	KindSolo           Kind = "solo"            // one rank holds everything
	KindTensorParallel Kind = "tensor_parallel" // all ranks share each layer
	KindPipeline       Kind = "pipeline"        // each rank holds whole layers
	KindMixed          Kind = "mixed"           // stages, of which some are shared
)

// Plan is who holds what. Ranks are those of one group, 0 to world size - 1.
type Plan struct {
	// Stages are the pipeline's, in the order in which a token passes them. The
	// first holds the embedding, the last the final norm and the output matrix
	// (which is the embedding where the file has no other).
	Stages []Stage `json:"stages"`
}

// Stage is a run of layers and the ranks that share each of them.
type Stage struct {
	Layers Range   `json:"layers"`
	Ranks  []int   `json:"ranks"`  // ascending; the first sends and receives for the stage
	Shards []Shard `json:"shards"` // by place in Ranks
}

// Shard is what one rank holds of each layer of its stage and of the vocabulary.
// Tensors without a part here (norms, routers, latent projections) are whole on
// every rank of the stage.
//
// Query heads are dealt out so that those of one rank are either whole groups
// that share a KV head each, or a part of one group: attention then sees equally
// many query heads for each of its KV heads. In the second case other ranks hold
// the same KV head too, with its rows of the key and value matrices and its KV
// cache.
//
// Of experts a rank holds its feed-forward columns in each of them, not whole
// experts: then all ranks have the same work whichever experts a token chooses,
// and a small file's columns still divide (MXFP4 and Q4_0 begin a block every 32
// columns). K-quants begin one every 256, so 768 columns divide by three and no
// further; for more ranks there are stages.
type Shard struct {
	Heads   Range `json:"heads"`    // query heads
	KVHeads Range `json:"kv_heads"` // that these need; may overlap with other ranks'
	FFN     Range `json:"ffn"`      // feed-forward columns, in each expert
	Vocab   Range `json:"vocab"`    // rows of embedding and output; empty in inner stages
}

// Kind tells how the plan uses its ranks.
func (p Plan) Kind() Kind {
	shared := false
	for _, s := range p.Stages {
		shared = shared || len(s.Ranks) > 1
	}
	switch {
	case len(p.Stages) > 1 && shared:
		return KindMixed
	case len(p.Stages) > 1:
		return KindPipeline
	case shared:
		return KindTensorParallel
	}
	return KindSolo
}

// World is the number of ranks.
func (p Plan) World() int {
	n := 0
	for _, s := range p.Stages {
		n += len(s.Ranks)
	}
	return n
}

// Of finds a rank's stage, by number, and its shard there; ok is false when the
// plan has no such rank.
func (p Plan) Of(rank int) (stage int, shard Shard, ok bool) {
	for i, s := range p.Stages {
		for j, r := range s.Ranks {
			if r == rank {
				return i, s.Shards[j], true
			}
		}
	}
	return 0, Shard{}, false
}

// Decode reads a plan that came from a peer, at most MaxPlanBytes of JSON. It
// says nothing about a model: Check does.
func Decode(b []byte) (Plan, error) {
	var p Plan
	if len(b) > MaxPlanBytes {
		return p, fmt.Errorf("a plan of %d bytes, at most %d are allowed", len(b), MaxPlanBytes)
	}
	if err := json.Unmarshal(b, &p); err != nil {
		return Plan{}, fmt.Errorf("plan: %w", err)
	}
	return p, nil
}
