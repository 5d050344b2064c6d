//go:build system_ggml

package ggml

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// api.h must agree with the headers of the machine's own ggml.
func TestHeaderAgreesWithSystemGGML(t *testing.T) {
	flags, err := exec.Command("pkg-config", "--cflags", "ggml").Output()
	require.NoError(t, err)
	args := append(strings.Fields(string(flags)), "-I.", "testdata/check.c")
	out, err := exec.Command("cc", append([]string{"-std=c11", "-fsyntax-only", "-Werror"}, args...)...).CombinedOutput()
	require.NoError(t, err, "%s", out)
}
