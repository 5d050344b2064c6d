package plan

import "fmt"

// Check tells whether the plan gives everything of a model of that shape to the
// ranks of a group of world ranks: each layer to one stage, each rank one place,
// and in each stage each head, feed-forward column and vocabulary row to one
// rank, cut where quantisation blocks begin. KV heads alone may be on several
// ranks. The error is one line and names what is wrong.
func (p Plan) Check(s Shape, world int) error {
	if world < 1 || world > MaxRanks {
		return fmt.Errorf("plan: %d ranks, 1 to %d are possible", world, MaxRanks)
	}
	if len(p.Stages) < 1 || len(p.Stages) > world {
		return fmt.Errorf("plan: %d stages for %d ranks", len(p.Stages), world)
	}
	seen := make([]bool, world)
	next := 0
	for i, st := range p.Stages {
		if st.Layers.Lo != next || st.Layers.Hi <= next || st.Layers.Hi > s.Layers {
			return fmt.Errorf("plan: stage %d holds layers %d to %d of %d, and those before it end at %d", i, st.Layers.Lo, st.Layers.Hi, s.Layers, next)
		}
		next = st.Layers.Hi
		if len(st.Ranks) < 1 || len(st.Ranks) != len(st.Shards) {
			return fmt.Errorf("plan: stage %d has %d ranks and %d shards", i, len(st.Ranks), len(st.Shards))
		}
		for j, r := range st.Ranks {
			if r < 0 || r >= world || seen[r] || j > 0 && r < st.Ranks[j-1] {
				return fmt.Errorf("plan: stage %d lists rank %d of %d out of order or twice", i, r, world)
			}
			seen[r] = true
		}
		if err := st.check(s, i == 0 || i == len(p.Stages)-1); err != nil {
			return fmt.Errorf("plan: stage %d: %w", i, err)
		}
	}
	if next != s.Layers {
		return fmt.Errorf("plan: no stage holds layers %d to %d", next, s.Layers)
	}
	for r, there := range seen {
		if !there {
			return fmt.Errorf("plan: rank %d is in no stage", r)
		}
	}
	return nil
}

// check looks at the shards of one stage.
func (st Stage) check(s Shape, vocab bool) error {
	group := s.group()
	var heads, ffn, rows []Range
	for j, sh := range st.Shards {
		heads, ffn, rows = append(heads, sh.Heads), append(ffn, sh.FFN), append(rows, sh.Vocab)
		if !s.oneShape(sh.Heads) {
			return fmt.Errorf("rank %d holds query heads %d to %d, neither whole groups of %d nor part of one", st.Ranks[j], sh.Heads.Lo, sh.Heads.Hi, group)
		}
		if want := s.kvOf(sh.Heads); sh.KVHeads != want {
			return fmt.Errorf("rank %d holds KV heads %v, its query heads need %v", st.Ranks[j], sh.KVHeads, want)
		}
		if !vocab && sh.Vocab != (Range{}) {
			return fmt.Errorf("rank %d holds vocabulary in an inner stage", st.Ranks[j])
		}
	}
	if err := covered("query heads", heads, s.heads(), s.headUnit()); err != nil {
		return err
	}
	if err := covered("feed-forward columns", ffn, s.FFN, s.FFNUnit); err != nil {
		return err
	}
	if vocab {
		return covered("vocabulary rows", rows, s.Vocab, s.VocabUnit)
	}
	return nil
}

// covered tells whether ranges cover n elements, in order, once each, and are
// cut at multiples of unit alone.
func covered(what string, ranges []Range, n, unit int) error {
	next := 0
	for _, r := range ranges {
		if r.Lo != next || r.Hi <= r.Lo || r.Hi > n {
			return fmt.Errorf("%s: [%d, %d) follows %d of %d", what, r.Lo, r.Hi, next, n)
		}
		if r.Lo%max(unit, 1) != 0 {
			return fmt.Errorf("%s: cut at %d, inside a block of %d", what, r.Lo, unit)
		}
		next = r.Hi
	}
	if next != n {
		return fmt.Errorf("%s: nobody holds %d to %d", what, next, n)
	}
	return nil
}
