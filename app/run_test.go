package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"daisy/inference/modeltest"

	"github.com/stretchr/testify/require"
)

func TestRunAnswers(t *testing.T) {
	got := result[answer](t, daisy(t, "run", realModel(t), "What is the capital of France?", "--json"))
	require.Contains(t, got.Answer, "Paris")
	require.Equal(t, "end", string(got.Stop))
	require.Positive(t, got.Decode)
}

func TestRunReadsStandardInput(t *testing.T) {
	cmd := daisy(t, "run", tinyModel(t), "--json", "--max-tokens", "5")
	cmd.Stdin = strings.NewReader("Hello")
	require.LessOrEqual(t, result[answer](t, cmd).GeneratedTokens, 5)
}

// Nothing but what was asked for is printed, whatever the locale.
func TestNoComplaints(t *testing.T) {
	for _, locale := range []string{"", "C", "C.UTF-8", "POSIX", "en_US.UTF-8", "hi_IN"} {
		cmd := daisy(t, "--version")
		cmd.Env = append(cmd.Env, "LC_ALL="+locale, "LANG="+locale)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err)
		require.Equal(t, "daisy version "+version+"\n", string(out), locale)
	}
}

// What is no model, or a cut or lying one, gives one clear line and exit code 1.
func TestRunRefusesBrokenFiles(t *testing.T) {
	good, err := os.ReadFile(tinyModel(t))
	require.NoError(t, err)
	huge := []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}
	for name, data := range map[string][]byte{
		"truncated":      good[:len(good)/2],
		"absurd lengths": append(append(append([]byte{}, good[:8]...), huge...), good[16:]...),
		"absurd string":  append(append(append([]byte{}, good[:24]...), huge...), good[32:]...),
		"no GGUF":        []byte("Just a text file, and not a model at all."),
		"empty":          {},
		"missing":        nil,
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "model.gguf")
			if data != nil {
				require.NoError(t, os.WriteFile(path, data, 0o600))
			}
			cmd := daisy(t, "run", path, "Hello")
			var stderr strings.Builder
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			require.Error(t, err)
			require.Equal(t, 1, cmd.ProcessState.ExitCode())
			require.Empty(t, out)
			require.Equal(t, 1, strings.Count(stderr.String(), "\n"), stderr.String())
			require.True(t, strings.HasPrefix(stderr.String(), "daisy: "), stderr.String())
			require.Contains(t, stderr.String(), "model.gguf")
		})
	}
}

func TestBench(t *testing.T) {
	got := result[benchResult](t, daisy(t, "bench", "--model", tinyModel(t), "--json", "--threads", "1",
		"--prompt-tokens", "20", "--gen-tokens", "10", "--repeat", "2"))
	require.Len(t, got.Decodes, 2)
	require.Positive(t, got.Prefill)
	require.Positive(t, got.Decode)
}

// What cannot be measured is refused.
func TestBenchRefuses(t *testing.T) {
	model := tinyModel(t)
	for _, flags := range [][]string{
		{"--warm-up", "-1", "--repeat", "1"},
		{"--warm-up", "9223372036854775807"},
		{"--gen-tokens", "9223372036854775807"},
		{"--prompt-tokens", "9223372036854775807"},
		{"--repeat", "0"},
		{"--sequences", "0"},
		{"--sequences", "-1"},
	} {
		refused(t, daisy(t, append([]string{"bench", "--model", model}, flags...)...), "a benchmark")
	}
}

// A flag that would have no effect is refused, with what it does not go with.
func TestFlagsThatDoNotGoTogether(t *testing.T) {
	model := tinyModel(t)
	refused(t, daisy(t, "run", model, "Hello", "--raw", "--keep"), "--raw")
	refused(t, daisy(t, "run", model, "Hello", "--raw", "--with", "other"), "--raw")
	refused(t, daisy(t, "run", model, "Hello", "--raw", "--system", "Be brief."), "--raw")
	refused(t, daisy(t, "run", model, "Hello", "--stream"), "--stream")
	refused(t, daisy(t, "demo", "--raw", "--model", model), "unknown flag")
}

// refused runs a command that gives one clear line and exit code 1.
func refused(t *testing.T, cmd *exec.Cmd, why string) {
	t.Helper()
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.Error(t, err, cmd.Args)
	require.Equal(t, 1, cmd.ProcessState.ExitCode())
	require.Empty(t, out)
	require.Equal(t, 1, strings.Count(stderr.String(), "\n"), stderr.String())
	require.True(t, strings.HasPrefix(stderr.String(), "daisy: "), stderr.String())
	require.Contains(t, stderr.String(), why)
}

// Whoever asks a model without a chat template is told, on standard error, and
// not where no template is used.
func TestMissingTemplateIsTold(t *testing.T) {
	model := tinyModel(t)
	plain := modeltest.Edit(t, model, nil, "tokenizer.chat_template")
	for _, c := range []struct {
		told bool
		args []string
	}{
		{true, []string{"run", plain, "Hello"}},
		{true, []string{"run", plain, "Hello", "--keep", "--interface", loopback()}},
		{true, []string{"run", plain, "Hello", "--keep", "--stream", "--interface", loopback()}},
		{true, []string{"demo", "--nodes", "2", "--model", plain, "--demo-dir", t.TempDir()}},
		{true, []string{"demo", "--nodes", "1", "--json", "--model", plain, "--demo-dir", t.TempDir()}},
		{false, []string{"run", plain, "Hello", "--raw"}},
		{false, []string{"run", model, "Hello"}},
		{false, []string{"demo", "--nodes", "1", "--model", model, "--demo-dir", t.TempDir()}},
	} {
		cmd := daisy(t, append(c.args, "--max-tokens", "5")...)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		require.NoError(t, err, stderr.String())
		require.Equal(t, c.told, strings.Contains(stderr.String(), noTemplate), "%s: %s", c.args, stderr.String())
		require.NotContains(t, string(out), noTemplate)
	}
}

// A prompt is a prompt, whatever it looks like.
func TestPromptLikeAFlag(t *testing.T) {
	result[togetherAnswer](t, daisy(t, "demo", "--nodes", "1", "--json", "--model", tinyModel(t),
		"--demo-dir", t.TempDir(), "--max-tokens", "5", "--prompt", "--help"))
}
