package plan

// Memory is what one rank needs, in bytes.
type Memory struct {
	Weights float64 `json:"weights"`
	Cache   float64 `json:"cache"` // of keys and values
	Scratch float64 `json:"scratch"`
}

// Total is the sum.
func (m Memory) Total() float64 { return m.Weights + m.Cache + m.Scratch }

// BatchTokens is the most tokens of one step, as in package inference.
const BatchTokens = 512

// Runtime is what a process takes besides, whatever the model: the vocabulary,
// recorded passes, buffers of connections.
const Runtime = 256 << 20

// layerMemory is what layer l takes on a rank.
func (m *Model) layerMemory(l *Layer, p part, u Usage) (weights, cache float64) {
	weights = l.attention(p).Bytes + l.feedForward(p).Bytes
	cache = l.kept(p, m.Shape.KVHeads) * u.cacheBytes() * (float64(u.Context) * float64(u.Sequences))
	return weights, cache
}

// ends is what a rank takes for embedding and output.
func (m *Model) ends(p part, first, last bool) float64 {
	sum := m.Other.Bytes
	if first {
		sum += m.Embed.Bytes * p.vocab
	}
	if last && !(first && m.Output == (Weights{})) {
		sum += m.output().Bytes * p.vocab
	}
	return sum
}

// scratch is what a rank takes besides weights and cache: masks and the residual
// stream of a batch, logits, and what computing a layer takes.
func (m *Model) scratch(p part, u Usage) float64 {
	batch := float64(min(BatchTokens, u.Context))
	masks := 2.0
	for i := range m.Layers {
		if m.Layers[i].Window > 0 {
			masks = 4
			break
		}
	}
	widest := max(p.heads, p.ffn)
	return Runtime + masks*batch*float64(u.Context) + 3*4*float64(m.Dim)*batch +
		m.Scratch*batch*widest + 3*4*float64(m.Shape.Vocab)*float64(u.Sequences)
}

// Memory is what the plan takes on each rank.
func (p Plan) Memory(m *Model, u Usage) []Memory { return p.memory(m, m.kinds(), u) }

func (p Plan) memory(m *Model, k kinds, u Usage) []Memory {
	out := make([]Memory, p.World())
	for i, st := range p.Stages {
		count := make([]float64, len(k.first))
		for l := st.Layers.Lo; l < st.Layers.Hi; l++ {
			count[k.of[l]]++
		}
		for j, r := range st.Ranks {
			part := m.Shape.part(st.Shards[j])
			mem := &out[r]
			for kind, n := range count {
				w, c := m.layerMemory(&m.Layers[k.first[kind]], part, u)
				mem.Weights += float64(w * n) // rounded, so that all machines get the same
				mem.Cache += float64(c * n)
			}
			mem.Weights += m.ends(part, i == 0, i == len(p.Stages)-1)
			mem.Scratch = m.scratch(part, u)
		}
	}
	return out
}
