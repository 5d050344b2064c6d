package plan

// Model is what a plan needs to know of a model: how it can be dealt out, and what
// each layer weighs. Package profile reads it from a file's header.
type Model struct {
	Name    string
	Shape   Shape
	Dim     int // width of the residual stream
	Layers  []Layer
	Embed   Weights // cut by vocabulary rows; only looked up
	Output  Weights // likewise; zero where the embedding serves as output too
	Other   Weights // whole on every rank
	Experts int     // in a layer that has some; 0: none
	Used    int     // experts that compute a token
	// MaxContext is the longest context that the model was trained for.
	MaxContext int
	// Scratch is what one token of a batch takes in memory while a layer computes,
	// on a rank that holds whole layers, in bytes.
	Scratch float64
}

// Weights are a part's bytes as in the file, and its elements. Sums of both stay
// below 2^53, where float64 is exact.
type Weights struct{ Bytes, Elements float64 }

// Layer is what one layer weighs, by how it is cut, and what its attention keeps
// for each position.
type Layer struct {
	Heads     Weights // cut by query heads
	KVHeads   Weights // cut by KV heads
	Attention Weights // of attention, whole on each rank of the stage
	FFN       Weights // cut by feed-forward columns, for every token
	Experts   Weights // cut likewise, of all experts together
	Router    Weights // of the feed-forward half, whole on each rank

	KVWidth float64 // elements that a KV head keeps for a position, key and value
	Latent  float64 // elements that are kept whatever the heads
	Score   float64 // multiply-adds of one query head for a position that it sees
	// Window is how many positions a token sees; 0: all. The cache keeps all of
	// them either way, as the engine does.
	Window int
}

// Add returns the sum.
func (w Weights) Add(x Weights) Weights {
	return Weights{w.Bytes + x.Bytes, w.Elements + x.Elements}
}

// scale returns f times w.
func (w Weights) scale(f float64) Weights { return Weights{w.Bytes * f, w.Elements * f} }

// Bytes is what the whole model takes in memory, without KV cache and scratch.
func (m *Model) Bytes() float64 {
	sum := m.Embed.Add(m.Output).Add(m.Other)
	for i := range m.Layers {
		l := &m.Layers[i]
		sum = sum.Add(l.Heads).Add(l.KVHeads).Add(l.Attention).Add(l.FFN).Add(l.Experts).Add(l.Router)
	}
	return sum.Bytes
}

// output is the matrix that makes logits.
func (m *Model) output() Weights {
	if m.Output == (Weights{}) {
		return m.Embed
	}
	return m.Output
}

// part is which part of each kind of weights a shard holds.
type part struct{ heads, kv, ffn, vocab float64 }

func (s Shape) part(sh Shard) part {
	of := func(r Range, n int) float64 { return float64(r.Len()) / float64(max(1, n)) }
	return part{of(sh.Heads, s.heads()), of(sh.KVHeads, s.KVHeads), of(sh.FFN, s.FFN), of(sh.Vocab, s.Vocab)}
}

// attention and feedForward are what a rank holds of a layer's two halves.
func (l *Layer) attention(p part) Weights {
	return l.Heads.scale(p.heads).Add(l.KVHeads.scale(p.kv)).Add(l.Attention)
}

func (l *Layer) feedForward(p part) Weights {
	return l.FFN.scale(p.ffn).Add(l.Experts.scale(p.ffn)).Add(l.Router)
}

// kept is how many elements a rank keeps for a position.
func (l *Layer) kept(p part, kvHeads int) float64 {
	return l.KVWidth*(p.kv*float64(kvHeads)) + l.Latent
}

// kinds tells which layers are alike: most are, so their costs are worked out once.
type kinds struct {
	of    []int // by layer
	first []int // the first layer of each kind
}

func (m *Model) kinds() kinds {
	k := kinds{of: make([]int, len(m.Layers))}
	for i := range m.Layers {
		j := 0
		for j < len(k.first) && m.Layers[k.first[j]] != m.Layers[i] {
			j++
		}
		if j == len(k.first) {
			k.first = append(k.first, i)
		}
		k.of[i] = j
	}
	return k
}
