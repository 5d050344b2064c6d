package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"daisy/inference/plan/published"

	"github.com/stretchr/testify/require"
)

var updatePlans = flag.Bool("update-plans", false, "write testdata/plans anew")

// What people read about Macs and models that are not here stays as it is, until
// somebody means to change it (go test ./app -run Plan -update-plans).
func TestPlanGolden(t *testing.T) {
	for name, args := range map[string][]string{
		"deepseek-r1":      {"--model", header(t, "deepseek-r1"), "--nodes", "../docs/plans/four-m3-ultra.json", "--context", "16384"},
		"kimi-k2":          {"--model", header(t, "kimi-k2"), "--nodes", "../docs/plans/four-m3-ultra.json", "--context", "16384"},
		"kimi-k2-desk":     {"--model", header(t, "kimi-k2"), "--nodes", "../docs/plans/desk.json"},
		"llama-desk":       {"--model", header(t, "llama-3.3-70b"), "--nodes", "../docs/plans/desk.json"},
		"llama-desk-many":  {"--model", header(t, "llama-3.3-70b"), "--nodes", "../docs/plans/desk.json", "--sequences", "4", "--cache", "q8"},
		"qwen-four-ultras": {"--model", header(t, "qwen2.5-7b"), "--nodes", "../docs/plans/four-m3-ultra.json"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			cmd := rootCommand()
			cmd.SetArgs(append([]string{"plan"}, args...))
			cmd.SetOut(&out)
			err := cmd.ExecuteContext(t.Context())
			if name == "kimi-k2-desk" {
				require.ErrorContains(t, err, "no plan works")
			} else {
				require.NoError(t, err)
			}
			golden := filepath.Join("testdata", "plans", name+".txt")
			if *updatePlans {
				require.NoError(t, os.MkdirAll(filepath.Dir(golden), 0o755))
				require.NoError(t, os.WriteFile(golden, out.Bytes(), 0o644))
			}
			want, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(want), out.String())
		})
	}
}

func TestPlanJSON(t *testing.T) {
	var out bytes.Buffer
	cmd := rootCommand()
	cmd.SetArgs([]string{"plan", "--model", header(t, "deepseek-r1"), "--nodes", "../docs/plans/four-m3-ultra.json", "--json"})
	cmd.SetOut(&out)
	require.NoError(t, cmd.ExecuteContext(t.Context()))
	var got planAnswer
	require.NoError(t, json.Unmarshal(out.Bytes(), &got))
	require.Equal(t, "DeepSeek R1", got.Model)
	require.Len(t, got.Macs, 4)
	best, ok := got.Chosen()
	require.True(t, ok)
	require.Len(t, best.Memory, len(best.Nodes))
	require.Equal(t, len(best.Nodes), best.Plan.World())
	require.NotEmpty(t, got.Reasons)
}

func TestPlanRefuses(t *testing.T) {
	model, macs := header(t, "kimi-k2"), "../docs/plans/desk.json"
	for want, args := range map[string][]string{
		"required":            {},
		"no such file":        {"--model", model, "--nodes", "absent.json"},
		"KV cache":            {"--model", model, "--nodes", macs, "--cache", "q2"},
		"context":             {"--model", model, "--nodes", macs, "--context", "999999999"},
		"sequences":           {"--model", model, "--nodes", macs, "--sequences", "-1"},
		"not a GGUF file":     {"--model", macs, "--nodes", macs},
		"invalid character":   {"--model", model, "--nodes", model},
		"prompt of -1 tokens": {"--model", model, "--nodes", macs, "--prompt-tokens", "-1"},
	} {
		cmd := rootCommand()
		cmd.SetArgs(append([]string{"plan"}, args...))
		cmd.SetOut(&bytes.Buffer{})
		cmd.SetErr(&bytes.Buffer{})
		require.ErrorContains(t, cmd.ExecuteContext(t.Context()), want)
	}
}

// header writes a published model's header and returns its path.
func header(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name+".gguf")
	f, err := os.Create(path)
	require.NoError(t, err)
	defer f.Close()
	require.NoError(t, published.Write(f, published.Models[name]))
	return path
}
