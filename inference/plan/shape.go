package plan

import "fmt"

// Shape is what of a model can be dealt out. Each part is cut only at multiples
// of its unit, where quantisation blocks begin.
type Shape struct {
	Layers              int
	Heads, HeadUnit     int // query heads; 0: one for each KV head, cut as those are
	KVHeads, KVHeadUnit int // the unit is of whole groups of query heads
	FFN, FFNUnit        int
	Vocab, VocabUnit    int
}

// Whole is the shard of a rank that holds whole layers.
func (s Shape) Whole() Shard {
	return Shard{Range{0, s.heads()}, Range{0, s.KVHeads}, Range{0, s.FFN}, Range{0, s.Vocab}}
}

// Solo is the plan of a single rank.
func (s Shape) Solo() Plan {
	return Plan{[]Stage{{Range{0, s.Layers}, []int{0}, []Shard{s.Whole()}}}}
}

// Deal cuts a layer over ranks in proportion to shares (by rank, all positive).
// Each part is dealt out for itself: ranks meet after attention and after the
// feed-forward block, so a rank with much of one gains nothing from little of the
// other. With more ranks than KV heads, several ranks hold the same KV head and
// share its query heads.
func (s Shape) Deal(shares []float64) ([]Shard, error) {
	heads, err := s.dealHeads(shares)
	if err != nil {
		return nil, err
	}
	ffn, err := Deal(s.FFN, s.FFNUnit, shares)
	if err != nil {
		return nil, &CutError{"feed-forward columns", s.FFN, s.FFNUnit, 1, len(shares), err}
	}
	vocab, err := Deal(s.Vocab, s.VocabUnit, shares)
	if err != nil {
		return nil, &CutError{"vocabulary rows", s.Vocab, s.VocabUnit, 1, len(shares), err}
	}
	shards := make([]Shard, len(shares))
	for i := range shards {
		shards[i] = Shard{heads[i], s.kvOf(heads[i]), ffn[i], vocab[i]}
	}
	return shards, nil
}

// CutError says which part of a model cannot be cut for so many ranks.
type CutError struct {
	What    string // in the plural
	N, Unit int    // elements, and how many a quantisation block keeps together
	Group   int    // query heads that share a KV head; else 1
	Ranks   int
	err     error
}

func (e *CutError) Error() string {
	return fmt.Sprintf("%d %s in units of %d for %d ranks: %v", e.N, e.What, e.Unit, e.Ranks, e.err)
}

func (e *CutError) Unwrap() error { return e.err }

// Part is a stage before it is dealt out: layers, ranks in ascending order, and
// the shares that these have in each layer.
type Part struct {
	Layers Range
	Ranks  []int
	Shares []float64
}

// Plan deals out each part's layers. A plan of one part with several ranks is
// tensor-parallel, one of parts with one rank each a pipeline. ErrTooManyRanks
// when a part has more ranks than the model can be cut for.
func (s Shape) Plan(parts ...Part) (Plan, error) {
	var p Plan
	for i, part := range parts {
		shards := []Shard{s.Whole()}
		if len(part.Ranks) != 1 {
			var err error
			if shards, err = s.Deal(part.Shares); err != nil {
				return Plan{}, fmt.Errorf("stage %d: %w", i, err)
			}
		}
		for j := range shards {
			if i > 0 && i < len(parts)-1 {
				shards[j].Vocab = Range{}
			}
		}
		p.Stages = append(p.Stages, Stage{part.Layers, part.Ranks, shards})
	}
	return p, nil
}

func (s Shape) heads() int {
	if s.Heads == 0 {
		return s.KVHeads
	}
	return s.Heads
}

// group is the number of query heads that share a KV head.
func (s Shape) group() int { return max(1, s.heads()/max(1, s.KVHeads)) }

func (s Shape) headUnit() int {
	if s.HeadUnit == 0 {
		return s.KVHeadUnit * s.group()
	}
	return s.HeadUnit
}

// kvOf are the KV heads that query heads need.
func (s Shape) kvOf(heads Range) Range {
	g := s.group()
	return Range{heads.Lo / g, (heads.Hi + g - 1) / g}
}

// oneShape tells whether each KV head of the rank has equally many of its query
// heads.
func (s Shape) oneShape(heads Range) bool {
	g := s.group()
	return heads.Lo%g == 0 && heads.Hi%g == 0 || heads.Lo/g == (heads.Hi-1)/g
}
