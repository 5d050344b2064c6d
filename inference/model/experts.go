package model

import (
	"math"

	"daisy/inference/ggml"
)

// experts is a routed feed-forward block: a router chooses, for each token, a few
// of many small feed-forward blocks and weights their sum.
//
// The router is on every rank and sees the same residual stream, so all ranks
// choose alike; of each expert a rank has its feed-forward columns, so the ranks'
// partial results are summed as after a dense block.
type experts struct {
	count   int // experts to choose from
	used    int // chosen for a token
	columns int // feed-forward columns of one expert

	gating     gating
	normalise  bool    // the chosen experts' weights are scaled to a sum of 1
	scale      float32 // then multiplied by this
	groups     int     // experts are dealt to groups of equal size; 0 or 1: not
	groupsUsed int     // only experts of that many groups can be chosen

	clamped bool // the activation is gpt-oss's, instead of SwiGLU
}

// gating turns the router's logits into weights; numbered as in GGUF files.
type gating int

const (
	gatingSoftmax gating = 1 // over all experts
	gatingSigmoid gating = 2 // each for itself
	gatingChosen  gating = 3 // softmax over the chosen ones
)

// Of gpt-oss's activation.
const (
	clampedAlpha = 1.702
	clampedLimit = 7
)

// maxExperts bounds what a graph must hold for one token's experts.
const maxExperts = 4096

// experts reads the keys that all mixtures of experts share.
func (k *keys) experts() experts {
	e := experts{
		count:   k.count("expert_count", maxExperts),
		used:    k.count("expert_used_count", maxExperts),
		columns: k.count("expert_feed_forward_length", maxDim),
		scale:   k.float("expert_weights_scale", 1),
	}
	if e.used > e.count {
		k.fail("%s: %d experts cannot be chosen out of %d", k.arch, e.used, e.count)
	}
	if e.count == 1 {
		k.fail("%s: one expert is no choice: %w", k.arch, ErrUnsupported)
	}
	if e.scale == 0 {
		e.scale = 1 // as files write what does not apply
	}
	return e
}

// optional reads a whole number that may be 0 or absent.
func (k *keys) optional(key string, most int) int {
	n, ok := k.f.Uint(k.arch + "." + key)
	if ok && n == 0 {
		return 0
	}
	return k.countOr(key, 0, most)
}

// groupsOf reads how experts are dealt to groups.
func (k *keys) groupsOf(e *experts) {
	e.groups, e.groupsUsed = k.optional("expert_group_count", e.count), k.optional("expert_group_used_count", e.count)
	if e.groups <= 1 {
		return
	}
	switch size := e.count / e.groups; {
	case e.count%e.groups != 0:
		k.fail("%s: %d experts cannot be dealt to %d groups", k.arch, e.count, e.groups)
	case e.groupsUsed < 1 || e.groupsUsed > e.groups:
		k.fail("%s: %d of %d expert groups cannot be used", k.arch, e.groupsUsed, e.groups)
	case e.groupsUsed*size < e.used:
		k.fail("%s: %d experts cannot be chosen out of %d groups of %d", k.arch, e.used, e.groupsUsed, size)
	case size < groupBest:
		k.fail("%s: groups of %d experts: %w", k.arch, size, ErrUnsupported)
	}
}

// specs lists one layer's tensors but for biases; at gives their names.
func (e *experts) specs(at func(string) string, dim int) []Spec {
	return []Spec{
		{Name: at("ffn_gate_inp.weight"), Shape: []int{dim, e.count}},
		{Name: at("ffn_gate_exps.weight"), Shape: []int{dim, e.columns, e.count}, Rule: FFNRows, Use: Experts},
		{Name: at("ffn_up_exps.weight"), Shape: []int{dim, e.columns, e.count}, Rule: FFNRows, Use: Experts},
		{Name: at("ffn_down_exps.weight"), Shape: []int{e.columns, dim, e.count}, Rule: FFNColumns, Use: Experts},
	}
}

// biases lists the biases of gpt-oss's experts.
func (e *experts) biases(at func(string) string, dim int) []Spec {
	return []Spec{
		{Name: at("ffn_gate_inp.bias"), Shape: []int{e.count}, Use: Vector},
		{Name: at("ffn_gate_exps.bias"), Shape: []int{e.columns, e.count}, Rule: FFNColumns, Use: Vector},
		{Name: at("ffn_up_exps.bias"), Shape: []int{e.columns, e.count}, Rule: FFNColumns, Use: Vector},
		{Name: at("ffn_down_exps.bias"), Shape: []int{dim, e.count}, Use: Vector},
	}
}

// Experts applies a routed feed-forward block to x [Dim, tokens] and returns this
// rank's part of the result.
func (b *Builder) Experts(e *experts, at func(string) string, x ggml.Tensor) ggml.Tensor {
	c, n := b.c, x.Bytes()/(f32Bytes*b.p.Dim)
	chosen, weights := b.route(e, at, x, n)
	if keep := b.mem.Chosen; keep != nil {
		kept := c.Contiguous2D(chosen, e.used, n)
		if err := keep(at("ffn_gate_inp.weight"), kept); err != nil {
			b.fail(err)
		}
		b.graph.Add(kept)
	}

	x = c.Reshape3D(x, b.p.Dim, 1, n)
	gate := b.chosenBias(c.MulMatID(b.Weight(at("ffn_gate_exps.weight")), x, chosen), at("ffn_gate_exps.bias"), chosen)
	up := b.chosenBias(c.MulMatID(b.Weight(at("ffn_up_exps.weight")), x, chosen), at("ffn_up_exps.bias"), chosen)
	var act ggml.Tensor
	if e.clamped {
		act = c.SwiGLUClamped(gate, up, clampedAlpha, clampedLimit)
	} else {
		act = c.SwiGLU(gate, up)
	}
	down := c.MulMatID(b.Weight(at("ffn_down_exps.weight")), act, chosen) // [Dim, used, tokens]
	if b.rank == 0 {                                                      // of the sum over ranks, so once
		down = b.chosenBias(down, at("ffn_down_exps.bias"), chosen)
	}
	down = c.Mul(down, weights)

	row := b.p.Dim * f32Bytes
	one := func(i int) ggml.Tensor { return c.View2D(down, b.p.Dim, n, row*e.used, row*i) }
	if e.used == 1 {
		return c.Contiguous2D(down, b.p.Dim, n)
	}
	sum := c.AddTo(one(0), one(1))
	for i := 2; i < e.used; i++ {
		sum = c.AddTo(sum, one(i))
	}
	return sum
}

// chosenBias adds the chosen experts' rows of a bias, if the file has it.
func (b *Builder) chosenBias(x ggml.Tensor, name string, chosen ggml.Tensor) ggml.Tensor {
	if w := b.Weight(name); w.Valid() {
		return b.c.AddID(x, w, chosen)
	}
	return x
}

// route chooses the experts for n tokens: their numbers (I32 [used, n]) and their
// weights [1, used, n].
func (b *Builder) route(e *experts, at func(string) string, x ggml.Tensor, n int) (chosen, weights ggml.Tensor) {
	c := b.c
	scores := b.AddBias(b.MulMat(at("ffn_gate_inp.weight"), x), at("ffn_gate_inp.bias"))
	switch e.gating {
	case gatingSoftmax:
		scores = c.SoftMax(scores)
	case gatingSigmoid:
		scores = c.Sigmoid(scores)
	}
	// The bias decides who is chosen, not with what weight.
	choice := b.AddBias(scores, at("exp_probs_b.bias"))
	if e.groups > 1 {
		choice = b.chooseGroups(e, choice, n)
	}
	chosen = c.TopK(choice, e.used)
	weights = c.GetRows(c.Reshape3D(scores, 1, e.count, n), chosen) // [1, used, n]
	if e.gating == gatingChosen || e.normalise {
		weights = c.Reshape2D(weights, e.used, n)
		if e.gating == gatingChosen {
			weights = c.SoftMax(weights)
		}
		if e.normalise {
			weights = c.Div(weights, c.AtLeast(c.SumRows(weights), smallestSum))
		}
		weights = c.Reshape3D(weights, 1, e.used, n)
	}
	return chosen, b.Scale(weights, e.scale)
}

// smallestSum keeps weights that are all 0 from being divided by 0: the least
// number that F16 holds with full precision.
const smallestSum = 6.103515625e-5

// groupBest is how many of a group's experts speak for it.
const groupBest = 2

// chooseGroups lets only experts of the best groups be chosen. DeepSeek V3 ranks
// groups by the sum of their two best experts, V2 (softmax) by the best one.
func (b *Builder) chooseGroups(e *experts, choice ggml.Tensor, n int) ggml.Tensor {
	c, size := b.c, e.count/e.groups
	best := groupBest
	if e.gating == gatingSoftmax {
		best = 1
	}
	top := c.TopK(c.Reshape3D(choice, size, e.groups, n), best) // [best, groups, n]
	scores := c.GetRows(c.Reshape4D(choice, 1, size, e.groups, n), top)
	scores = c.SumRows(c.Reshape3D(scores, best, e.groups, n))
	used := c.TopK(c.Reshape2D(scores, e.groups, n), e.groupsUsed) // [groupsUsed, n]

	groups := c.Reshape3D(choice, size, e.groups, n)
	kept := c.GetRows(groups, used)
	none := c.Fill(groups, float32(math.Inf(-1)))
	return c.Reshape2D(c.SetRows(none, kept, used), e.count, n)
}
