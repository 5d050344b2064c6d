package plan

import "math"

// Step is where the time of one step goes, in seconds, when one sequence is
// computed alone.
type Step struct {
	Compute float64 `json:"compute"` // of all stages
	Launch  float64 `json:"launch"`
	Network float64 `json:"network"` // all-reduces, hand-overs, logits
}

// Total is the sum.
func (s Step) Total() float64 { return s.Compute + s.Launch + s.Network }

// Prediction is how fast a plan will be.
type Prediction struct {
	Decode  float64 `json:"decode_tokens_per_second"` // over all sequences
	Prefill float64 `json:"prefill_tokens_per_second"`
	// FirstToken is the time from a prompt to the first token of its answer, in
	// seconds.
	FirstToken float64 `json:"first_token_seconds"`
	// Answer is the time to the last token of an answer while all sequences
	// decode, in seconds.
	Answer float64 `json:"answer_seconds"`
	Token  Step    `json:"token"` // of one sequence's token, alone
}

// Predict says how fast the plan will be. Node of rank r is nodes[order[r]]. The
// plan must pass Check for the model's shape and len(order).
//
// A tensor-parallel step takes what its slowest rank takes in each half of a
// layer. In a pipeline a token passes all stages one after the other; several
// sequences, and the chunks of a prompt, are in different stages at once, so that
// the slowest stage decides how many pass.
func (p Plan) Predict(m *Model, nodes []Node, net Network, order []int, u Usage) Prediction {
	return p.predict(m, m.kinds(), nodes, net, order, u)
}

func (p Plan) predict(m *Model, k kinds, nodes []Node, net Network, order []int, u Usage) Prediction {
	r := pipeline{kinds: k}
	for i, st := range p.Stages {
		members := make([]int, len(st.Ranks))
		for j, rank := range st.Ranks {
			members[j] = order[rank]
		}
		r.teams = append(r.teams, newTeam(m, nodes, net, members, st.Shards))
		if i > 0 {
			r.hops = append(r.hops, net.link(order[p.Stages[i-1].Ranks[0]], members[0]))
		}
		r.layers = append(r.layers, st.Layers)
	}
	if p.World() > 1 {
		for rank := 1; rank < len(order); rank++ {
			l := net.link(order[0], order[rank])
			r.step.Latency = max(r.step.Latency, l.Latency)
		}
		last := p.Stages[len(p.Stages)-1]
		for j, rank := range last.Ranks {
			if rank != 0 {
				l := net.link(order[0], order[rank])
				r.logits += l.seconds(4 * float64(last.Shards[j].Vocab.Len()))
			}
		}
	}
	return r.predict(m, u)
}

// pipeline is a plan at work.
type pipeline struct {
	kinds  kinds
	teams  []*team
	layers []Range
	hops   []Link  // from each stage to the next
	step   Link    // what a step's descriptor takes to reach all ranks
	logits float64 // seconds until the leader has one token's
}

func (r *pipeline) predict(m *Model, u Usage) Prediction {
	var out Prediction
	out.Token, _ = r.steps(m, u, batch{1, 1, u.position()})

	// Decode: as many batches in flight as there are stages, each with its part of
	// the sequences.
	flights := min(len(r.teams), u.Sequences)
	each := float64(u.Sequences) / float64(flights)
	all, slowest := r.steps(m, u, batch{each, each, u.position()})
	period := max(all.Total(), float64(flights)*slowest)
	out.Decode = float64(u.Sequences) / period

	// Prefill: chunks of the prompt, one after the other in each stage.
	chunks := math.Ceil(float64(u.Prompt) / BatchTokens)
	all, slowest = r.steps(m, u, batch{float64(u.Prompt) / chunks, 1, float64(u.Prompt) / 2})
	if len(r.teams) == 1 {
		slowest = all.Total()
	}
	out.FirstToken = all.Total() + (chunks-1)*slowest
	out.Prefill = float64(u.Prompt) / out.FirstToken
	out.Answer = out.FirstToken + float64(u.Answer-1)*period
	return out
}

// steps is the time of a step that passes all stages, and of the slowest of them.
func (r *pipeline) steps(m *Model, u Usage, b batch) (all Step, slowest float64) {
	all.Network = r.step.Latency + r.logits*b.sequences
	for i := range r.teams {
		s := r.stage(m, u, b, i)
		all.Compute, all.Launch, all.Network = all.Compute+s.Compute, all.Launch+s.Launch, all.Network+s.Network
		slowest = max(slowest, s.Total())
	}
	return all, slowest
}

// stage is the time of stage i, with the hand-over to it.
func (r *pipeline) stage(m *Model, u Usage, b batch, i int) (s Step) {
	t, layers := r.teams[i], r.layers[i]
	times := make([]float64, len(r.kinds.first))
	for l := layers.Lo; l < layers.Hi; l++ {
		k := r.kinds.of[l]
		if times[k] == 0 {
			times[k] = t.layer(m, &m.Layers[r.kinds.first[k]], b, u)
		}
		s.Compute += times[k]
	}
	if i == len(r.teams)-1 {
		s.Compute += t.output(m, b)
	}
	s.Launch, s.Network = t.meet(m, layers.Len(), i == 0, b)
	if i > 0 {
		s.Network += r.hop(m, b, i)
	}
	return s
}

// hop is the time in which the residual stream comes to stage i, and from its
// first rank to the others.
func (r *pipeline) hop(m *Model, b batch, i int) float64 {
	t, n := r.teams[i], b.residual(m)
	seconds := r.hops[i-1].seconds(n)
	if w := len(t.nodes); w > 1 {
		seconds += t.link.Latency + float64(w-1)*n/t.link.Bandwidth
	}
	return seconds
}
