package plan

// team is the ranks of one stage at work: nodes by place, each with its part of
// every layer.
type team struct {
	nodes  []*Node
	parts  []part
	link   Link    // among them
	launch float64 // of the slowest
}

func newTeam(m *Model, nodes []Node, net Network, members []int, shards []Shard) *team {
	t := &team{}
	for i, n := range members {
		t.nodes = append(t.nodes, &nodes[n])
		t.parts = append(t.parts, m.Shape.part(shards[i]))
		t.launch = max(t.launch, nodes[n].Launch)
	}
	if len(members) > 1 {
		t.link = net.among(members)
	}
	return t
}

// layer is the time that computing a layer takes.
func (t *team) layer(m *Model, l *Layer, b batch, u Usage) float64 {
	attention, feedForward := 0.0, 0.0
	for i, n := range t.nodes {
		attention = max(attention, m.attentionSeconds(n, l, t.parts[i], b, u))
		feedForward = max(feedForward, m.feedForwardSeconds(n, l, t.parts[i], b))
	}
	return attention + feedForward
}

// output is the time that the output matrix takes.
func (t *team) output(m *Model, b batch) float64 {
	slowest := 0.0
	for i, n := range t.nodes {
		slowest = max(slowest, m.outputSeconds(n, t.parts[i], b))
	}
	return slowest
}

// meet is the time of all-reduces and launches in a stage of so many layers: two
// of each in a layer when the stage is shared, and one more of each where it looks
// up the embedding; else one launch.
func (t *team) meet(m *Model, layers int, first bool, b batch) (launch, network float64) {
	if len(t.nodes) == 1 {
		return t.launch, 0
	}
	sums := 2 * layers
	if first {
		sums++
	}
	return float64(sums+1) * t.launch, float64(sums) * t.link.allReduce(len(t.nodes), b.residual(m))
}

// residual is the residual stream's bytes.
func (b batch) residual(m *Model) float64 { return 4 * float64(m.Dim) * b.tokens }
