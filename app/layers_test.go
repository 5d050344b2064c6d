package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// layers from the top down: a package may import its own layer and those below.
var layers = []string{"app", "node", "inference", "rdma"}

// TestLayers holds the direction of imports, and that only app knows fyne and
// only inference/ggml has cgo of our own. It looks at the files that a Mac
// compiles too: darwin's cgo files are invisible to a plain Linux listing.
func TestLayers(t *testing.T) {
	for _, goal := range [][]string{
		{"GOOS=linux", "CGO_ENABLED=1"},
		{"GOOS=darwin", "GOARCH=arm64", "CGO_ENABLED=1"},
	} {
		packages := list(t, goal)
		require.Greater(t, len(packages), 10, "go list found too little for %v", goal)
		for _, p := range packages {
			layer := layerOf(p.ImportPath)
			for _, imported := range append(append(p.Imports, p.TestImports...), p.XTestImports...) {
				if strings.HasPrefix(imported, "fyne.io/") {
					require.Equal(t, "app", layer, "%s imports %s: only app may know fyne", p.ImportPath, imported)
				}
				below := layerOf(imported)
				if below == "" || layer == "" {
					continue
				}
				require.LessOrEqual(t, index(layer), index(below), "%s imports %s: imports point down only", p.ImportPath, imported)
			}
			if len(p.CgoFiles) > 0 {
				require.Equal(t, "daisy/inference/ggml", p.ImportPath, "cgo of our own lives in inference/ggml alone")
			}
		}
	}
}

type listed struct {
	ImportPath                         string
	Imports, TestImports, XTestImports []string
	CgoFiles                           []string
}

func list(t *testing.T, env []string) []listed {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Imports,TestImports,XTestImports,CgoFiles", "daisy/...")
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.Output()
	require.NoError(t, err)
	var packages []listed
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else {
			require.NoError(t, err)
		}
		packages = append(packages, p)
	}
}

// layerOf is the layer of one of our packages, "" for others and for assets.
func layerOf(path string) string {
	rest, ok := strings.CutPrefix(path, "daisy/")
	if !ok {
		return ""
	}
	first, _, _ := strings.Cut(rest, "/")
	if index(first) < 0 {
		return ""
	}
	return first
}

func index(layer string) int {
	for i, l := range layers {
		if l == layer {
			return i
		}
	}
	return -1
}
