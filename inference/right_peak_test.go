package inference

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"daisy/inference/ggml"
	"daisy/inference/gguf"
	"daisy/inference/model"
	"daisy/inference/modeltest"
	"daisy/inference/plan"

	"github.com/stretchr/testify/require"
)

// Loading takes at most this beside the shard.
const besidesLoading = 64 << 20

// Peak memory while a rank loads, from a local file and from a source, in plain and
// in repacked memory, whole and cut: measured in a process of its own.
func TestLongPeakMemoryOfLoading(t *testing.T) {
	long(t)
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	for _, kind := range []gguf.Type{gguf.F16, gguf.Q4_0} {
		opt := modeltest.Options{Type: kind, Layers: 2, Dim: 1024, Heads: 16, KVHeads: 8, HeadDim: 64, FFN: 14336}
		if kind == gguf.Q4_0 {
			opt.FFN *= 3
		}
		path := tiny(t, opt)
		for _, world := range []int{1, 2} {
			for _, from := range []string{"file", "source"} {
				cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestPeakMemoryChild$", "-test.v")
				cmd.Env = append(os.Environ(), "DAISY_PEAK="+fmt.Sprintf("%s %d %s", from, world, path))
				out, err := cmd.CombinedOutput()
				require.NoError(t, err, "%s", out)
				require.Contains(t, string(out), "shard", "the child has not run")
				t.Logf("%s %s of %d: %s", kind, from, world, strings.TrimSpace(strings.SplitN(string(out), "\n", 3)[1]))
			}
		}
	}
}

func TestPeakMemoryChild(t *testing.T) {
	var from, path string
	var world int
	if n, _ := fmt.Sscanf(os.Getenv("DAISY_PEAK"), "%s %d %s", &from, &world, &path); n < 3 {
		t.Skip("part of TestLongPeakMemoryOfLoading")
	}
	file, err := os.Open(filepath.Clean(path))
	require.NoError(t, err)
	defer file.Close()
	info, err := file.Stat()
	require.NoError(t, err)
	open := func() (*gguf.File, error) { return gguf.Open(path) }
	if from == "source" {
		s := gguf.Source{Name: "source", Parts: []gguf.SourcePart{{Reader: file, Size: info.Size()}}}
		open = func() (*gguf.File, error) { return gguf.OpenSource(s) }
	}
	backend, err := ggml.NewCPU(1, 0)
	require.NoError(t, err)
	defer backend.Close()
	before := memoryLine(t, "VmRSS:")
	require.NoError(t, os.WriteFile("/proc/self/clear_refs", []byte("5"), 0)) // the peak starts anew

	f, err := open()
	require.NoError(t, err)
	defer f.Close()
	arch, err := model.New(f)
	require.NoError(t, err)
	p, err := model.Shape(f, arch).Deal([]float64{1, 1}[:world])
	require.NoError(t, err)
	place := model.Place{Layers: plan.Range{Hi: arch.Params().Layers}, Shard: p[0], World: world}
	w, err := loadWeights(t.Context(), f, arch, place, backend, 0, nil)
	require.NoError(t, err)
	defer w.close()
	peak := memoryLine(t, "VmHWM:") - before
	fmt.Printf("shard %d MB, at most %d MB beside\n", w.bytes>>20, (peak-w.bytes)>>20)
	require.Greater(t, w.bytes, int64(60<<20))
	if from == "source" {
		require.Greater(t, peak, w.bytes, "measured nothing")
	}
	require.Less(t, peak, w.bytes+besidesLoading)
}

// memoryLine reads bytes from /proc/self/status.
func memoryLine(t *testing.T, name string) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		var kB int64
		if rest, ok := strings.CutPrefix(line, name); ok {
			_, err := fmt.Sscanf(rest, "%d kB", &kB)
			require.NoError(t, err)
			return kB << 10
		}
	}
	t.Fatal(name, " is missing")
	return 0
}
