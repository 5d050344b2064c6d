package plan

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func choose(t *testing.T, m *Model, nodes []Node, net Network, u Usage) *Choice {
	t.Helper()
	c, err := Choose(m, nodes, net, u.Defaults(m))
	require.NoError(t, err)
	return c
}

func codes(c *Choice) (out []string) {
	for _, r := range c.Reasons {
		out = append(out, r.Code)
	}
	return out
}

func TestOneMacAloneIsFaster(t *testing.T) {
	c := choose(t, dense(32), macs(2, 64e9), Uniform(2, wifiLink), Usage{Leader: -1})
	best, ok := c.Chosen()
	require.True(t, ok)
	require.Equal(t, KindSolo, best.Kind)
	require.Equal(t, []string{CodeSoloFaster}, codes(c))
	require.Regexp(t, `^one Mac alone is faster: the network costs \d+\.\d ms per token and the second Mac saves \d+\.\d ms$`, c.Reasons[0].Text)
	require.Greater(t, c.Reasons[0].Args["network"], c.Reasons[0].Args["saved"])
}

func TestTwoMacsAreFaster(t *testing.T) {
	c := choose(t, dense(80), macs(2, 64e9), Uniform(2, rdmaLink), Usage{Leader: -1})
	best, _ := c.Chosen()
	require.Equal(t, KindTensorParallel, best.Kind)
	require.Equal(t, []string{CodeFaster}, codes(c))
	require.Regexp(t, `^2 Macs together are faster: \S+ tokens per second, Mac 1 alone makes \S+$`, c.Reasons[0].Text)
}

// A slow third Mac is left out, and people are told what it would do.
func TestSlowMacIsLeftOut(t *testing.T) {
	nodes := append(macs(2, 64e9), Node{Name: "Mac mini", Memory: 16e9, Bandwidth: 50e9, Compute: 1e12, Launch: 2e-4, Layer: 1e-3})
	c := choose(t, dense(80), nodes, Uniform(3, rdmaLink), Usage{Leader: -1})
	best, _ := c.Chosen()
	require.Equal(t, []int{0, 1}, best.Nodes)
	require.Equal(t, []string{CodeFaster, CodeLeftOut}, codes(c))
	require.Regexp(t, `^leaves out Mac mini: it would slow the others from \S+ to \S+ tokens per second$`, c.Reasons[1].Text)
}

// A Mac that nobody else can reach is left out with the reason.
func TestUnreachableMacIsLeftOut(t *testing.T) {
	net := Uniform(3, rdmaLink)
	net[0][2], net[1][2] = Link{}, Link{}
	c := choose(t, dense(80), macs(3, 64e9), net, Usage{Leader: -1})
	require.Equal(t, []string{CodeFaster, CodeNoUse}, codes(c))
	require.Contains(t, c.Reasons[1].Text, "leaves out Mac 3: Mac 1 and Mac 3 have no connection")
}

func TestModelThatFitsNowhere(t *testing.T) {
	c := choose(t, dense(80), macs(2, 4e9), Uniform(2, rdmaLink), Usage{Leader: -1})
	_, ok := c.Chosen()
	require.False(t, ok)
	require.Regexp(t, `^does not fit: \S+ GB needed, 8\.0 GB free on 2 Macs together$`, c.Reasons[0].Text)
}

// Over slow links a model that no Mac has room for becomes a pipeline; over fast
// ones it is shared.
func TestLinksDecideTheKind(t *testing.T) {
	for kind, link := range map[Kind]Link{KindPipeline: {1e-3, 1e8}, KindTensorParallel: rdmaLink} {
		c := choose(t, dense(80), macs(3, 10e9), Uniform(3, link), Usage{Leader: -1})
		best, ok := c.Chosen()
		require.True(t, ok)
		require.Equal(t, kind, best.Kind)
		require.Equal(t, CodeNeedsRoom, c.Reasons[0].Code)
	}
}

// Two pairs of near Macs that are far from each other make two shared stages.
func TestFarPairsMakeSharedStages(t *testing.T) {
	net := Uniform(4, Link{2e-3, 1e9})
	net[0][1], net[2][3] = rdmaLink, rdmaLink
	c := choose(t, dense(80), macs(4, 4e9), net, Usage{Leader: -1, Context: 1024})
	best, ok := c.Chosen()
	require.True(t, ok, "%v", c.Reasons)
	require.Equal(t, KindMixed, best.Kind)
	for _, st := range best.Plan.Stages {
		require.Len(t, st.Ranks, 2)
		a, b := best.Nodes[st.Ranks[0]], best.Nodes[st.Ranks[1]]
		require.Equal(t, rdmaLink, net.link(a, b))
	}
}

// Shares follow speed as far as memory allows: the fast Mac with little of it gives
// work away.
func TestSharesKeepWithinMemory(t *testing.T) {
	nodes := macs(2, 64e9)
	nodes[0].Bandwidth *= 2
	wide := choose(t, dense(80), nodes, Uniform(2, Link{1e-6, 8e9}), Usage{Leader: -1})
	best, _ := wide.Chosen()
	require.Equal(t, KindTensorParallel, best.Kind)
	require.InDelta(t, 2.0/3, float64(best.Plan.Stages[0].Shards[0].FFN.Len())/14336, 0.01)

	nodes[0].Memory = 6e9
	tight := choose(t, dense(80), nodes, Uniform(2, Link{1e-6, 8e9}), Usage{Leader: -1})
	for _, c := range tight.Candidates {
		if c.Kind == KindTensorParallel {
			require.Nil(t, c.Refused)
			require.LessOrEqual(t, c.Memory[0].Total(), 6e9)
			require.Less(t, c.Plan.Stages[0].Shards[0].FFN.Len(), 14336/2)
		}
	}
}

// Several sequences fill the stages of a pipeline that one leaves idle.
func TestSequencesFillAPipeline(t *testing.T) {
	m := dense(80)
	nodes, net := macs(4, 64e9), Uniform(4, rdmaLink)
	p, err := m.Shape.Plan(Part{Range{0, 20}, []int{1}, nil}, Part{Range{20, 40}, []int{2}, nil},
		Part{Range{40, 60}, []int{3}, nil}, Part{Range{60, 80}, []int{0}, nil})
	require.NoError(t, err)
	one := p.Predict(m, nodes, net, []int{0, 1, 2, 3}, Usage{Leader: -1, Sequences: 1}.Defaults(m)).Decode
	four := p.Predict(m, nodes, net, []int{0, 1, 2, 3}, Usage{Leader: -1, Sequences: 4}.Defaults(m)).Decode
	require.Greater(t, four, 3*one)
}

// A windowed layer reads its window however long the context is; a longer prompt
// costs the others.
func TestWindowBoundsWhatIsRead(t *testing.T) {
	speed := func(window, prompt int) float64 {
		m := dense(32)
		for i := range m.Layers {
			m.Layers[i].Window = window
		}
		u := Usage{Leader: -1, Context: 65536, Prompt: prompt}.Defaults(m)
		return m.Shape.Solo().Predict(m, macs(1, 64e9), Uniform(1, Link{}), []int{0}, u).Decode
	}
	require.InEpsilon(t, speed(1024, 4096), speed(1024, 60000), 1e-9)
	require.Greater(t, speed(0, 4096), 1.2*speed(0, 60000))
}

// All experts take memory; a token reads those that it uses.
func TestExpertsCountWhereTheyAreUsed(t *testing.T) {
	m := sparse(20)
	all := *m
	all.Used = all.Experts
	u := Usage{Leader: -1}.Defaults(m)
	solo := func(m *Model, u Usage) Candidate {
		s, err := newSearch(m, macs(1, 640e9), Uniform(1, Link{}), u)
		require.NoError(t, err)
		return s.solo(0)
	}
	require.Equal(t, solo(m, u).Memory, solo(&all, u).Memory)
	require.Greater(t, solo(m, u).Decode, 3*solo(&all, u).Decode)
	many := u
	many.Sequences = 64 // use nearly all experts, which are read once for all
	require.Less(t, solo(m, many).Decode, 20*solo(m, u).Decode)
}

func TestChooseRefusesNonsense(t *testing.T) {
	m, good := dense(4), Usage{Leader: -1}.Defaults(dense(4))
	for name, ask := range map[string]func(nodes []Node, net Network, u *Usage) ([]Node, Network){
		"no nodes":       func([]Node, Network, *Usage) ([]Node, Network) { return nil, nil },
		"no links":       func(n []Node, _ Network, _ *Usage) ([]Node, Network) { return n, nil },
		"ragged links":   func(n []Node, net Network, _ *Usage) ([]Node, Network) { net[1] = nil; return n, net },
		"link backwards": func(n []Node, net Network, _ *Usage) ([]Node, Network) { net[0][1].Latency = -1; return n, net },
		"no bandwidth":   func(n []Node, net Network, _ *Usage) ([]Node, Network) { n[0].Bandwidth = 0; return n, net },
		"long launch":    func(n []Node, net Network, _ *Usage) ([]Node, Network) { n[0].Launch = 1e9; return n, net },
		"context":        func(n []Node, net Network, u *Usage) ([]Node, Network) { u.Context = 1 << 20; return n, net },
		"sequences":      func(n []Node, net Network, u *Usage) ([]Node, Network) { u.Sequences = 0; return n, net },
		"prompt":         func(n []Node, net Network, u *Usage) ([]Node, Network) { u.Prompt = u.Context; return n, net },
		"leader":         func(n []Node, net Network, u *Usage) ([]Node, Network) { u.Leader = 2; return n, net },
	} {
		u := good
		nodes, net := ask(macs(2, 64e9), Uniform(2, rdmaLink), &u)
		_, err := Choose(m, nodes, net, u)
		require.Error(t, err, name)
	}
	_, err := Choose(dense(MaxLayers+1), macs(1, 64e9), Uniform(1, Link{}), good)
	require.Error(t, err)
}
