package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"daisy/inference/modeltest"
	"daisy/inference/plan"

	"github.com/stretchr/testify/require"
)

// sharedModel has enough heads, columns and layers for four ranks in any plan.
func sharedModel(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "shared.gguf")
	modeltest.Write(t, path, modeltest.Options{Layers: 6, Heads: 8, KVHeads: 4, FFN: 256})
	return path
}

func TestBenchNodes(t *testing.T) {
	model := sharedModel(t)
	for _, c := range []struct {
		nodes int
		kind  plan.Kind
		args  []string
	}{
		{2, plan.KindTensorParallel, []string{"--plan", "tp", "--independent"}},
		{2, plan.KindPipeline, []string{"--plan", "pp", "--tls=false", "--sequences", "2"}},
		{3, plan.KindMixed, []string{"--plan", "mixed", "--pin=false", "--delay", "100us"}},
		{2, "", []string{"--plan", "auto", "--calibrate-on", tinyModel(t)}},
		{1, plan.KindSolo, []string{"--plan", "tp"}},
	} {
		t.Run(fmt.Sprint(c.nodes, c.args), func(t *testing.T) {
			t.Parallel()
			r := result[nodesResult](t, daisy(t, append([]string{"bench", "--model", model, "--nodes", fmt.Sprint(c.nodes),
				"--prompt-tokens", "8", "--gen-tokens", "4", "--repeat", "2", "--warm-up", "0", "--json"}, c.args...)...))
			require.Equal(t, c.nodes, r.Nodes)
			if c.kind != "" {
				require.Equal(t, c.kind, r.Kind)
				require.Len(t, r.Ranks, c.nodes)
			}
			require.Equal(t, r.Kind, r.Plan.Kind())
			require.NotEmpty(t, r.Ranks)
			require.Equal(t, 12, r.Context)
			require.Equal(t, 1, r.Threads)
			share := 0.0
			for _, x := range r.Ranks {
				require.Positive(t, x.Weights)
				require.Positive(t, x.Cache)
				share += x.Share
			}
			require.InDelta(t, 1, share, 1e-9)
			require.Len(t, r.Decodes, 2)
			require.Positive(t, r.Decode)
			require.Positive(t, r.PredictedDecode)
			require.InEpsilon(t, r.PredictedDecode/r.Decode, r.DecodeRatio, 1e-9)
			require.Equal(t, r.Sequences == 1, r.Prefill > 0)
			require.NotEmpty(t, r.Probes)
			for _, p := range r.Probes {
				require.Positive(t, p.Bandwidth)
				require.Positive(t, p.Compute)
				require.Positive(t, p.Launch)
			}
			if len(r.Ranks) > 1 {
				require.Equal(t, r.TLS, r.Transport == "tcp+tls")
				require.Greater(t, r.Latency, r.DelaySeconds)
				require.Positive(t, r.Bandwidth)
				require.Positive(t, r.PredictedToken.Network)
			}
			if c.args[len(c.args)-1] == "--independent" {
				require.NotNil(t, r.Independent)
				require.Len(t, r.Independent.Decodes, 2)
				require.Positive(t, r.Independent.DecodeRatio)
				require.Positive(t, r.Independent.PrefillRatio)
			}
		})
	}
}

func TestBenchNodesForPeople(t *testing.T) {
	out, err := daisy(t, "bench", "--model", sharedModel(t), "--nodes", "2", "--plan", "tp", "--prompt-tokens", "4", "--gen-tokens", "3").Output()
	require.NoError(t, err)
	for _, says := range []string{"tcp+tls", "2 of 2 processes", "rank 1: stage 0, layers 0–5, heads 4–7", "predicted", "measured"} {
		require.Contains(t, string(out), says)
	}
}

func TestBenchNodesRefuses(t *testing.T) {
	model := sharedModel(t)
	for says, args := range map[string][]string{
		"--nodes only":             {"--tls=false"},
		"not in 1..16":             {"--nodes", "17"},
		"not tp, pp, mixed":        {"--nodes", "2", "--plan", "dp"},
		"goes with --plan tp only": {"--nodes", "2", "--plan", "pp", "--independent"},
		"--delay":                  {"--nodes", "2", "--delay", "2s"},
		"has one":                  {"--nodes", "2", "--threads", "2", "--pin"},
		"a benchmark needs":        {"--nodes", "2", "--repeat", "0"},
		"15 processes":             {"--nodes", "15", "--plan", "tp"},
		"no-model.gguf":            {"--nodes", "2", "--calibrate-on", "no-model.gguf"},
	} {
		refused(t, daisy(t, append([]string{"bench", "--model", model}, args...)...), says)
	}
}

// However the parent ends, and whatever they are doing, its processes end too.
func TestBenchNodesLeavesNobody(t *testing.T) {
	model := sharedModel(t)
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprint(signal, late), func(t *testing.T) {
				t.Parallel()
				cmd := daisy(t, "bench", "--model", model, "--nodes", "2", "--plan", "tp", "--prompt-tokens", "200", "--gen-tokens", "200",
					"--repeat", "100000", "--warm-up", "0", "--progress")
				stderr, err := cmd.StderrPipe()
				require.NoError(t, err)
				require.NoError(t, cmd.Start())
				lines := bufio.NewScanner(stderr)
				var pids []int
				for lines.Scan() {
					var i, pid int
					if n, _ := fmt.Sscanf(lines.Text(), "Process %d is %d", &i, &pid); n == 2 {
						pids = append(pids, pid)
					}
					if len(pids) == 2 && (!late || strings.HasPrefix(lines.Text(), "Round")) {
						break
					}
				}
				require.Len(t, pids, 2)
				require.NoError(t, cmd.Process.Signal(signal))
				for lines.Scan() { // so that nobody waits to be read
				}
				require.Error(t, cmd.Wait())
				for _, pid := range pids {
					require.Eventually(t, func() bool { return !alive(pid) }, 20*time.Second, 10*time.Millisecond, "process %d", pid)
				}
			})
		}
	}
}

// alive tells whether a process runs; one that has ended and that nobody has waited
// for does not.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(stat), ") ")
	return err != nil || !strings.HasPrefix(rest, "Z") // there is no /proc elsewhere
}

// A process whose parent has gone says so and ends.
func TestNodeRankWithoutParent(t *testing.T) {
	var out strings.Builder
	err := nodeRank(context.Background(), strings.NewReader(`{"Threads":1}`+"\n"), &out)
	require.ErrorContains(t, err, "parent")
	require.Contains(t, out.String(), "127.0.0.1:")
	require.Error(t, nodeRank(context.Background(), strings.NewReader("x"), &out))
}
