//go:build linux

package main

import (
	"bytes"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"daisy/rdma/linkbench"
	"daisy/rdma/verbs/fake"
	"daisy/rdma/verbs/fake/cfake"

	"github.com/stretchr/testify/require"
)

// fakeVerbs puts a fake library where the system's loader finds it first, as a
// machine that has so many cables from one of its own ports to another.
func fakeVerbs(t *testing.T, cables int) func(*exec.Cmd) *exec.Cmd {
	dir := t.TempDir()
	path, err := cfake.Build(dir)
	require.NoError(t, err)
	require.NoError(t, os.Symlink(path, filepath.Join(dir, "libibverbs.so.1")))
	fabric, err := cfake.Make(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, fabric.Close()) })
	for i := range cables {
		var ends [2]fake.Port
		for j := range ends {
			ends[j] = fake.Port{Node: "here", Device: "rdma_en" + string(rune('0'+2*i+j))}
			require.NoError(t, fabric.AddDevice(ends[j], fake.Options{IPv4: netip.AddrFrom4([4]byte{10, 9, byte(i), byte(1 + j)})}))
		}
		require.NoError(t, fabric.Wire(ends[0], ends[1]))
	}
	return func(c *exec.Cmd) *exec.Cmd {
		c.Env = append(append(c.Env, fabric.Environment("here")...), "LD_LIBRARY_PATH="+dir)
		return c
	}
}

func TestBenchLinkVerbs(t *testing.T) {
	with := fakeVerbs(t, 1)
	res := result[linkbench.Result](t, with(daisy(t, append([]string{"bench", "link", "--local", "2", "--transport", "verbs"}, shortLink...)...)))
	require.Equal(t, "verbs", res.Transport)
	require.Len(t, res.Rows, 2+1+4*2)
}

// TestBenchLinkNoVerbs: one line says why there is no RDMA.
func TestBenchLinkNoVerbs(t *testing.T) {
	cmd := fakeVerbs(t, 0)(daisy(t, append([]string{"bench", "link", "--local", "2", "--transport", "verbs"}, shortLink...)...))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	require.Error(t, cmd.Run())
	lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
	require.Len(t, lines, 2, stderr.String())
	require.Contains(t, lines[1], "no RDMA devices")
}
