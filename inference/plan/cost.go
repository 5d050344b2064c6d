package plan

import (
	"math"

	"daisy/rdma"
)

// batch is the work of one step: tokens of some sequences that each look at
// position earlier positions. Decode has a token for each sequence, prefill many
// for one.
type batch struct{ tokens, sequences, position float64 }

// The cost model, in seconds. A rank computes half a layer (attention, or the
// feed-forward block) in
//
//	max(bytes / Bandwidth, operations / Compute) + Layer/2
//
// where bytes are the weights that the tokens use, once, and the keys and values
// that they look at; operations are two for each weight and token, and two for
// each multiply-add of attention. Ranks that share a layer wait for the slowest
// in each half, then for launching a segment and for an all-reduce of the
// residual stream: that is why each half is dealt out by speed for itself.

// half is the time of half a layer on node n.
func (n *Node) half(w Weights, kept, scores float64, b batch) float64 {
	return n.stream(w.Bytes+kept, 2*(w.Elements*b.tokens+scores)) + n.Layer/2
}

func (n *Node) stream(bytes, operations float64) float64 {
	return max(bytes/n.Bandwidth, operations/n.Compute)
}

// attentionSeconds is the time of a layer's attention on a rank.
func (m *Model) attentionSeconds(n *Node, l *Layer, p part, b batch, u Usage) float64 {
	sees := b.position
	if l.Window > 0 {
		sees = min(sees, float64(l.Window))
	}
	kept := l.kept(p, m.Shape.KVHeads) * u.cacheBytes() * (sees * b.sequences)
	scores := l.Score * (p.heads * float64(m.Shape.heads())) * (sees * b.tokens)
	return n.half(l.attention(p), kept, scores, b)
}

// feedForwardSeconds is the time of a layer's feed-forward block on a rank. Of the
// experts, those count that at least one of the tokens chooses, as if they chose
// at random; for the operations, those that each token uses.
func (m *Model) feedForwardSeconds(n *Node, l *Layer, p part, b batch) float64 {
	w := l.FFN.scale(p.ffn).Add(l.Router)
	if l.Experts.Bytes > 0 && m.Experts > 0 {
		used := float64(m.Used) / float64(m.Experts)
		e := l.Experts.scale(p.ffn)
		w = w.Add(Weights{e.Bytes * (1 - math.Pow(1-used, b.tokens)), e.Elements * used})
	}
	return n.half(w, 0, 0, b)
}

// outputSeconds is the time of the output matrix on a rank, for one token of each
// sequence.
func (m *Model) outputSeconds(n *Node, p part, b batch) float64 {
	w := m.output().scale(p.vocab)
	return n.stream(w.Bytes, 2*(w.Elements*b.sequences))
}

// allReduce is the time to sum n bytes over ranks whose slowest link is l: package
// rdma exchanges directly up to a limit, then reduce-scatters and all-gathers.
func (l Link) allReduce(world int, n float64) float64 {
	if world < 2 {
		return 0
	}
	w := float64(world)
	if world == 2 || n <= rdma.WholeLimit {
		return l.Latency + (w-1)*n/l.Bandwidth
	}
	return 2*l.Latency + 2*(w-1)/w*n/l.Bandwidth
}
