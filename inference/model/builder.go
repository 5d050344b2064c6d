package model

import (
	"daisy/inference/ggml"
	"daisy/inference/plan"
)

// Run is a stretch of one sequence's tokens in a batch: N tokens at positions
// from Start on, in KV cache slot Slot. Attention looks at the slot's first KV
// positions (at least Start+N; what the mask hides does not count).
type Run struct{ Slot, Start, N, KV int }

// Memory is what a forward pass reads and writes that outlives it. Tensors are
// F32 where nothing else is said; n is the batch's token count.
type Memory struct {
	Weights map[string]ggml.Tensor // this rank's shard, by name; absent ones are missing
	Joined  map[string]Joined      // those that lie in a larger matrix, instead
	K, V    []ggml.Tensor          // per layer [Params.CacheWidths, Slots*Context]; no V when its width is 0
	Cache   ggml.Type              // of K and V
	Host    bool                   // the CPU computes
	Context int                    // positions of one slot

	Tokens   ggml.Tensor // I32 [n]: rows of this rank's embedding shard
	OwnToken ggml.Tensor // [n]: 1 where the token's embedding is in this shard, else 0
	Pos      ggml.Tensor // I32 [n]
	CacheRow ggml.Tensor // I64 [n]: Slot*Context + position
	Outputs  ggml.Tensor // I32 [outputs]: batch indices that want logits
	Mask     ggml.Tensor // F16: for each run its [KV, N], one after the other
	// WindowMask is Mask for windowed layers; absent when Params.Window is 0.
	WindowMask ggml.Tensor

	// Stream holds the residual stream [Dim, n] where ranks meet, in places used
	// in turn: the sum, what it is added to and the result live at once. Logits
	// holds [vocabulary shard, outputs].
	Stream [3]*ggml.Buffer
	Logits *ggml.Buffer

	// Chosen, when not nil, gives a place to the experts that a layer chooses for
	// each token, I32 [used, n], so that they can be read after the pass.
	Chosen func(router string, ids ggml.Tensor) error
}

// Joined is a matrix that is some rows of a larger one, Whole, which has Width rows.
type Joined struct {
	Whole              ggml.Tensor
	First, Rows, Width int
}

// Segment is a graph that one rank computes without the others. Sum, when valid,
// is its result [Dim, n], to be summed over all ranks before the next segment.
type Segment struct {
	Graph ggml.Graph
	Sum   ggml.Tensor
	Len   int // elements of Sum
}

// Builder is what an architecture records its forward pass with.
type Builder struct {
	c       *ggml.Context
	p       *Params
	mem     *Memory
	place   Place
	shard   plan.Shard
	rank    int // in the stage
	world   int // of the stage
	runs    []Run
	n       int
	outputs int

	graph      ggml.Graph // the segment being recorded
	graphNodes int
	segments   []Segment
	turn       int // which place of Stream is next
	kept       ggml.Tensor
	lastPlaced ggml.Tensor            // what placed returned last
	in, out    ggml.Tensor            // what comes from the stage before, and goes to the next
	strided    map[ggml.Tensor]Joined // products [Rows, n] that lie in a larger one
	logits     ggml.Tensor
	err        error
}

// Upper bounds on what one layer and one run in it add to a graph, operations
// and inputs counted together.
const (
	nodesPerLayer = 128 // and two for each expert used
	nodesPerRun   = 24
)

// Pass is a recorded forward pass.
type Pass struct {
	Segments []Segment
	In, Out  ggml.Tensor // [Dim, n] from the stage before and for the next, or absent
	Logits   ggml.Tensor // [vocabulary shard, outputs], or absent
	context  *ggml.Context
}

// Close frees the pass; its segments must not be computed any more.
func (p *Pass) Close() { p.context.Close() }

// NewPass records the forward pass of one rank over runs, with logits for
// outputs of their tokens. The graphs have no scratch memory yet.
func NewPass(a Arch, mem *Memory, place Place, runs []Run, outputs int) (*Pass, error) {
	b := &Builder{p: a.Params(), mem: mem, place: place, shard: place.Shard, rank: place.Rank, world: place.World,
		runs: runs, outputs: outputs,
		strided: map[ggml.Tensor]Joined{}}
	for _, r := range runs {
		b.n += r.N
	}
	layers := place.Layers.Len() + 1 // the embedding and the output count as one
	perLayer := nodesPerLayer + 2*b.p.ExpertsUsed + len(runs)*nodesPerRun
	graphs := 1
	b.graphNodes = layers * perLayer
	if place.World > 1 {
		graphs, b.graphNodes = 2*layers, perLayer // no segment is longer than a layer
	}
	c, err := ggml.NewContext(layers*perLayer, graphs, b.graphNodes)
	if err != nil {
		return nil, err
	}
	b.c = c
	b.graph = c.NewGraph(b.graphNodes)
	a.Build(b)
	b.endSegment(ggml.Tensor{}, 0)
	if b.err != nil {
		c.Close()
		return nil, b.err
	}
	return &Pass{b.segments, b.in, b.out, b.logits, c}, nil
}
