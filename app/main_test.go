package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"daisy/inference/modeltest"

	"github.com/stretchr/testify/require"
)

// asDaisy makes the test binary run as the program: tests start it like that,
// and so do the nodes of a demo.
const asDaisy = "DAISY_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asDaisy) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// daisy is a command line to be run in a process of its own.
func daisy(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, exe, args...)
	cmd.Env = append(os.Environ(), asDaisy+"=1", "DAISY_DIR="+t.TempDir())
	return cmd
}

// result runs the command and reads the JSON object it prints.
func result[T any](t testing.TB, cmd *exec.Cmd) (v T) {
	t.Helper()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s", stderr.String())
	require.NoError(t, json.Unmarshal(out, &v), "%s", out)
	return v
}

func tinyModel(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	modeltest.Write(t, path, modeltest.Options{Heads: 8, KVHeads: 4, FFN: 256, Context: 4096})
	return path
}

// realModel is the one that `make model` brings.
func realModel(t testing.TB) string {
	t.Helper()
	path, err := filepath.Abs("../models/SmolLM2-135M-Instruct.Q4_1.gguf")
	require.NoError(t, err)
	if _, err := os.Stat(path); err != nil {
		t.Skip("the real model is not here: run `make model`")
	}
	return path
}
