package profile

import (
	"path/filepath"
	"testing"

	"daisy/inference/gguf"
	"daisy/inference/model"
	"daisy/inference/plan"

	"github.com/stretchr/testify/require"
)

// What plans count as each rank's weights and cache is what the loader allocates
// for it, for each architecture.
func TestMemoryIsWhatIsLoaded(t *testing.T) {
	files, err := filepath.Glob("../../model/testdata/*.gguf")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) { requireMemory(t, path) })
	}
}

func requireMemory(t *testing.T, path string) {
	f, err := gguf.Open(path)
	require.NoError(t, err)
	defer f.Close()
	a, err := model.New(f)
	require.NoError(t, err)
	m, err := Of(f)
	require.NoError(t, err)
	layers := len(m.Layers)
	u := plan.Usage{Context: 64, Sequences: 2, Prompt: 10, Answer: 10}
	for _, parts := range [][]plan.Part{
		{{Layers: plan.Range{Lo: 0, Hi: layers}, Ranks: []int{0}}},
		{{Layers: plan.Range{Lo: 0, Hi: layers}, Ranks: []int{0, 1}, Shares: []float64{2, 1}}},
		{{Layers: plan.Range{Lo: 0, Hi: 1}, Ranks: []int{0}}, {Layers: plan.Range{Lo: 1, Hi: layers}, Ranks: []int{1, 2}, Shares: []float64{1, 1}}},
	} {
		if len(parts) > layers {
			continue
		}
		p, err := m.Shape.Plan(parts...)
		require.NoError(t, err)
		require.NoError(t, p.Check(m.Shape, p.World()))
		for r, mem := range p.Memory(m, u) {
			stage, shard, _ := p.Of(r)
			st := p.Stages[stage]
			weights := 0
			for _, s := range a.Specs() {
				tensor, ok := f.Tensor(s.Name)
				layer, inLayer := layerOf(s.Name, layers)
				first, last := stage == 0, stage == len(p.Stages)-1
				if !ok || inLayer && !st.Layers.Contains(layer) {
					continue
				}
				if s.Rule == model.VocabRows { // looked up in the first stage, multiplied in the last
					tied := m.Output == (plan.Weights{})
					if lookup := s.Use == model.Lookup; !(lookup && first) && !(last && (tied || !lookup)) {
						continue
					}
				}
				n := 1
				for _, d := range s.ShardShape(s.Cut(a.Params(), shard)) {
					n *= d
				}
				weights += n / int(tensor.Type.BlockSize()) * int(tensor.Type.BlockBytes())
			}
			near := 1e-3
			if m.Used > 0 { // blocks of another width are cut in proportion, as near as units allow
				near = 0.025
			}
			require.InEpsilon(t, weights, mem.Weights, near, "rank %d of %d", r, p.World())
			k, v := a.Params().CacheWidths(shard)
			require.InEpsilon(t, (k+v)*2*64*2*st.Layers.Len(), mem.Cache, 1e-9)
			require.Greater(t, mem.Scratch, float64(plan.Runtime))
		}
	}
	sum := 0.0
	for _, x := range f.Tensors() {
		sum += float64(x.Bytes())
	}
	require.InEpsilon(t, sum, m.Bytes(), 1e-12)
}

func TestLayerOf(t *testing.T) {
	for name, want := range map[string]int{"blk.0.a": 0, "blk.29.attn_q.weight": 29} {
		i, ok := layerOf(name, 30)
		require.True(t, ok)
		require.Equal(t, want, i)
	}
	for _, name := range []string{"blk.30.a", "blk.-1.a", "blk.x.a", "output.weight", "blk."} {
		_, ok := layerOf(name, 30)
		require.False(t, ok, name)
	}
}
