package sample

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
)

// Sampler chooses tokens for one sequence.
type Sampler struct {
	p      Params
	rng    *rand.PCG
	recent ring

	adjusted []float32   // logits with bias and penalties
	kept     []candidate // what is still possible
	sorted   []int32     // recent tokens, to count them
}

// candidate is a token that may still be chosen. w is its weight in the step under way, odd how far its surprise is
// from the expected one.
type candidate struct {
	id    int32
	logit float32
	w     float64
	odd   float64
}

const pcgStream = 0x6461697379 // any constant: the seed alone names the stream

// New returns a sampler. Parameters that Validate refuses give some token all the same, never a panic.
func New(p Params) *Sampler {
	p.LogitBias = maps.Clone(p.LogitBias)
	p.PenaltyWindow = min(max(p.PenaltyWindow, 0), MaxPenaltyWindow)
	return &Sampler{p: p, rng: rand.NewPCG(p.Seed, pcgStream), recent: newRing(p.PenaltyWindow)}
}

// Accept tells that id now belongs to the sequence, chosen or given; penalties count it.
func (s *Sampler) Accept(id int32) { s.recent.push(id) }

// Sample returns the id of the next token, -1 for no logits at all. logits has one entry per token and is not changed.
// NaN counts as impossible; when nothing is possible the answer is 0. The choice is not accepted by itself.
func (s *Sampler) Sample(logits []float32) int32 {
	logits = s.adjust(logits)
	if !(s.p.Temperature > 0) || len(logits) == 0 {
		return best(logits)
	}
	s.keep(logits)
	if len(s.kept) < 2 || math.IsInf(float64(s.kept[0].logit), 1) {
		return best(logits)
	}
	if s.p.Typical > 0 && s.p.Typical < 1 {
		s.typical()
	}
	if s.p.TopP > 0 && s.p.TopP < 1 {
		s.topP()
	}
	if s.p.MinP > 0 {
		s.minP()
	}
	return s.draw()
}

// best returns the lowest id of the greatest logit.
func best(logits []float32) int32 {
	if len(logits) == 0 {
		return -1
	}
	at, top := 0, float32(math.Inf(-1))
	for i, v := range logits {
		if v > top {
			at, top = i, v
		}
	}
	return int32(at)
}

// adjust applies bias and penalties, to a copy, if there are any.
func (s *Sampler) adjust(logits []float32) []float32 {
	if len(s.p.LogitBias) == 0 && (!s.p.penalises() || s.recent.n == 0) {
		return logits
	}
	s.adjusted = append(s.adjusted[:0], logits...)
	for id, b := range s.p.LogitBias {
		if id >= 0 && int(id) < len(s.adjusted) {
			s.adjusted[id] += b
		}
	}
	if s.p.penalises() {
		s.penalise()
	}
	return s.adjusted
}

func (s *Sampler) penalise() {
	s.sorted = s.recent.appendTo(s.sorted[:0])
	slices.Sort(s.sorted)
	for i := 0; i < len(s.sorted); {
		id, count := s.sorted[i], 0
		for ; i < len(s.sorted) && s.sorted[i] == id; i++ {
			count++
		}
		if id < 0 || int(id) >= len(s.adjusted) {
			continue
		}
		v := s.adjusted[id]
		if r := s.p.RepeatPenalty; r > 0 {
			if v > 0 {
				v /= r
			} else {
				v *= r
			}
		}
		s.adjusted[id] = v - float32(count)*s.p.FrequencyPenalty - s.p.PresencePenalty
	}
}

// draw picks one of the candidates by their probabilities at the temperature.
func (s *Sampler) draw() int32 {
	top := s.kept[0].logit
	for _, c := range s.kept {
		top = max(top, c.logit)
	}
	var total float64
	for i := range s.kept {
		c := &s.kept[i]
		c.w = weight(float64(c.logit-top) / float64(s.p.Temperature))
		total += c.w
	}
	// 53 random bits make a float in [0, 1) exactly.
	at := float64(s.rng.Uint64()>>11) / (1 << 53) * total
	for _, c := range s.kept {
		if at -= c.w; at < 0 {
			return c.id
		}
	}
	return s.kept[len(s.kept)-1].id // rounding
}

// Clone returns an independent sampler in the same state.
func (s *Sampler) Clone() *Sampler {
	rng := *s.rng
	return &Sampler{p: s.p, rng: &rng, recent: s.recent.clone()}
}

// State is what a sampler needs to go on elsewhere, or after a loss of the engine.
type State struct {
	RNG    []byte  // the generator's own encoding
	Recent []int32 // accepted tokens within the penalty window, oldest first
}

// State returns a copy of the state.
func (s *Sampler) State() State {
	b, _ := s.rng.MarshalBinary() // never fails
	return State{RNG: b, Recent: s.recent.appendTo(nil)}
}

// Restore puts a sampler with the same parameters where the one that gave st was. On an error nothing has changed.
func (s *Sampler) Restore(st State) error {
	rng := new(rand.PCG)
	if err := rng.UnmarshalBinary(st.RNG); err != nil {
		return fmt.Errorf("sample: restoring the generator: %w", err)
	}
	s.rng = rng
	s.recent = newRing(s.p.PenaltyWindow)
	for _, id := range st.Recent {
		s.recent.push(id)
	}
	return nil
}
