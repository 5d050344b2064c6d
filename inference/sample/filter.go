package sample

import (
	"cmp"
	"math"
	"slices"
)

// better orders candidates by logit, the lower id first among equals.
func better(a, b candidate) int {
	if c := cmp.Compare(b.logit, a.logit); c != 0 {
		return c
	}
	return cmp.Compare(a.id, b.id)
}

// keep fills kept with the tokens that are possible: the k best in order with top-k, else all, the best first and the
// others in no order.
func (s *Sampler) keep(logits []float32) {
	s.kept = s.kept[:0]
	k := s.p.TopK
	if k <= 0 || k >= len(logits) {
		if cap(s.kept) < len(logits) {
			s.kept = make([]candidate, 0, len(logits))
		}
		top := 0
		for i, v := range logits {
			if v > float32(math.Inf(-1)) { // false for NaN
				if len(s.kept) > 0 && v > s.kept[top].logit {
					top = len(s.kept)
				}
				s.kept = append(s.kept, candidate{id: int32(i), logit: v})
			}
		}
		if len(s.kept) > 0 {
			s.kept[0], s.kept[top] = s.kept[top], s.kept[0]
		}
		return
	}
	// A heap of the k best, the worst on top: most tokens fail its one comparison.
	for i, v := range logits {
		switch {
		case !(v > float32(math.Inf(-1))):
		case len(s.kept) < k:
			s.kept = append(s.kept, candidate{id: int32(i), logit: v})
			if len(s.kept) == k {
				for j := k/2 - 1; j >= 0; j-- {
					sink(s.kept, j)
				}
			}
		case v > s.kept[0].logit:
			s.kept[0] = candidate{id: int32(i), logit: v}
			sink(s.kept, 0)
		}
	}
	slices.SortFunc(s.kept, better)
}

// sink restores the heap below i.
func sink(h []candidate, i int) {
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if child+1 < len(h) && better(h[child+1], h[child]) > 0 {
			child++
		}
		if better(h[i], h[child]) >= 0 {
			return
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}

// weight is e to the x, 0 where that is below 1e-17: not worth the time over a whole vocabulary, and under what one
// draw can tell.
func weight(x float64) float64 {
	if x < -40 {
		return 0
	}
	return math.Exp(x)
}

// weigh sets every w to the probability at temperature 1.
func (s *Sampler) weigh() {
	top := s.kept[0].logit
	for _, c := range s.kept {
		top = max(top, c.logit)
	}
	var total float64
	for i := range s.kept {
		c := &s.kept[i]
		c.w = weight(float64(c.logit - top))
		total += c.w
	}
	for i := range s.kept {
		s.kept[i].w /= total
	}
}

// topP keeps the best candidates, as few as reach the probability together, in no order. It selects by partition, as
// quickselect does, since sorting a whole vocabulary takes longer than a small model's step.
func (s *Sampler) topP() {
	s.weigh()
	need := float64(s.p.TopP)
	from, to := 0, len(s.kept) // before from all are kept, from to on none
	for to-from > 16 {
		part := s.kept[from:to]
		i, j := partition(part)
		var left float64
		for _, c := range part[:j+1] {
			left += c.w
		}
		if left >= need {
			to = from + j + 1
			continue
		}
		need -= left
		from += j + 1
		if i > j+1 { // one equal to the pivot stands between
			if s.kept[from].w >= need {
				s.kept = s.kept[:from+1]
				return
			}
			need -= s.kept[from].w
			from++
		}
	}
	slices.SortFunc(s.kept[from:to], better)
	for from < to {
		need -= s.kept[from].w
		from++
		if need <= 0 {
			break
		}
	}
	s.kept = s.kept[:max(from, 1)]
}

// partition moves candidates so that c[:j+1] are no worse than c[i:], with at most one between. Both sides are smaller
// than c, which has at least two.
func partition(c []candidate) (i, j int) {
	pivot := median(c[0], c[len(c)/2], c[len(c)-1])
	i, j = 0, len(c)-1
	for i <= j {
		for better(c[i], pivot) < 0 {
			i++
		}
		for better(c[j], pivot) > 0 {
			j--
		}
		if i <= j {
			c[i], c[j] = c[j], c[i]
			i++
			j--
		}
	}
	return i, j
}

func median(a, b, c candidate) candidate {
	if better(a, b) > 0 {
		a, b = b, a
	}
	if better(b, c) > 0 {
		b = c
	}
	if better(a, b) > 0 {
		return a
	}
	return b
}

// minP keeps what is at least MinP times as likely as the best.
func (s *Sampler) minP() {
	top := s.kept[0].logit
	for _, c := range s.kept {
		top = max(top, c.logit)
	}
	floor := float64(top) + math.Log(float64(s.p.MinP))
	s.kept = slices.DeleteFunc(s.kept, func(c candidate) bool { return float64(c.logit) < floor && c.logit < top })
}

// typical keeps the candidates whose surprise is nearest to the expected surprise, as many as it takes to reach the
// probability (locally typical sampling).
func (s *Sampler) typical() {
	s.weigh()
	var entropy float64
	for _, c := range s.kept {
		if c.w > 0 {
			entropy -= c.w * math.Log(c.w)
		}
	}
	for i := range s.kept {
		s.kept[i].odd = math.Abs(-math.Log(s.kept[i].w) - entropy)
	}
	slices.SortFunc(s.kept, func(a, b candidate) int {
		if c := cmp.Compare(a.odd, b.odd); c != 0 {
			return c
		}
		return better(a, b)
	})
	var sum float64
	for i := range s.kept {
		if sum += s.kept[i].w; sum >= float64(s.p.Typical) {
			s.kept = s.kept[:i+1]
			return
		}
	}
}
