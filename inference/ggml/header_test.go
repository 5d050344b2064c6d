//go:build !system_ggml

package ggml

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// api.h must agree with the headers of the ggml that is linked.
func TestHeaderAgreesWithLinkedGGML(t *testing.T) {
	dir, err := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/ollama/ollama/ml/backend/ggml/ggml/src").Output()
	require.NoError(t, err)
	checkHeader(t, "-I"+filepath.Join(strings.TrimSpace(string(dir)), "..", "include"))
}

// A check that cannot fail would be worthless: a wrong constant must be found.
func TestHeaderCheckFindsDrift(t *testing.T) {
	dir, err := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/ollama/ollama/ml/backend/ggml/ggml/src").Output()
	require.NoError(t, err)
	include := "-I" + filepath.Join(strings.TrimSpace(string(dir)), "..", "include")
	api, err := os.ReadFile("api.h")
	require.NoError(t, err)
	check, err := os.ReadFile("testdata/check.c")
	require.NoError(t, err)
	for old, drifted := range map[string]string{
		"GGML_TYPE_Q8_0, 8":                      "GGML_TYPE_Q8_0, 9",
		"int prio;":                              "int prio, more;",
		"ggml_scale(CTX ctx, TENSOR a, float s)": "ggml_scale(CTX ctx, TENSOR a, double s)",
	} {
		tmp := t.TempDir()
		require.Contains(t, string(api), old)
		require.NoError(t, os.WriteFile(filepath.Join(tmp, "api.h"), []byte(strings.Replace(string(api), old, drifted, 1)), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(tmp, "check.c"), check, 0o600))
		require.Error(t, compile(include, "-I"+tmp, filepath.Join(tmp, "check.c")).Run(), "drift to %q went unseen", drifted)
	}
}

func checkHeader(t *testing.T, flags ...string) {
	t.Helper()
	out, err := compile(append(flags, "-I.", "testdata/check.c")...).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

func compile(args ...string) *exec.Cmd {
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "cc"
	}
	return exec.Command(cc, append([]string{"-std=c11", "-fsyntax-only", "-Werror"}, args...)...)
}
