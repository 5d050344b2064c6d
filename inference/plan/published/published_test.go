package published

import (
	"bytes"
	"testing"

	"daisy/inference/gguf"
	"daisy/inference/plan"
	"daisy/inference/plan/profile"

	"github.com/stretchr/testify/require"
)

// The engine runs the shapes, and they weigh what their makers say: R1 has 671 B
// parameters, of which 37 B compute a token, K2 1 T and 32 B; files of Q4_K_M take
// about 404 and 621 GB (huggingface.co/unsloth). Llama's and Qwen's take 42.5 and
// 4.68 GB (huggingface.co/bartowski).
func TestShapesAreThePublishedOnes(t *testing.T) {
	for name, want := range map[string]struct{ all, active, gb, keys float64 }{
		"deepseek-r1":   {671, 37, 404, 61 * 576},
		"kimi-k2":       {1026, 32, 621, 61 * 576},
		"llama-3.3-70b": {70.55, 69.5, 42.52, 80 * 2 * 8 * 128},
		"qwen2.5-7b":    {7.615, 7.07, 4.683, 28 * 2 * 4 * 128},
	} {
		var b bytes.Buffer
		require.NoError(t, Write(&b, Models[name]))
		f, err := gguf.ParseHeader(bytes.NewReader(b.Bytes()), int64(b.Len()))
		require.NoError(t, err)
		m, err := profile.Of(f)
		require.NoError(t, err)
		all, active, kept := m.Embed.Elements+m.Output.Elements, m.Output.Elements, 0.0
		for _, l := range m.Layers {
			always := l.Heads.Add(l.KVHeads).Add(l.Attention).Add(l.FFN).Add(l.Router).Elements
			all += always + l.Experts.Elements
			active += always + l.Experts.Elements*float64(m.Used)/float64(max(1, m.Experts))
			kept += l.Latent + l.KVWidth*float64(m.Shape.KVHeads)
		}
		require.InEpsilon(t, want.all*1e9, all, 0.005, name)
		require.InEpsilon(t, want.active*1e9, active, 0.03, name)
		require.InEpsilon(t, want.gb*1e9, m.Bytes(), 0.015, name)
		require.InEpsilon(t, want.keys, kept, 1e-12)
		require.Equal(t, plan.KindSolo, m.Shape.Solo().Kind())
	}
}
