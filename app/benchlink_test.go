package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"image/png"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"daisy/rdma/linkbench"

	"github.com/stretchr/testify/require"
)

var shortLink = []string{"--sizes", "4,16k", "--budget", "1ms", "--json"}

func TestBenchLinkLocal(t *testing.T) {
	for kind, args := range map[string][]string{
		"tcp":     {"--local", "3"},
		"tcp+tls": {"--local", "2", "--tls"},
		"mem":     {"--local", "2", "--transport", "mem"},
	} {
		t.Run(kind, func(t *testing.T) {
			curves := filepath.Join(t.TempDir(), "curves.png")
			args := append(append([]string{"bench", "link", "--png", curves}, shortLink...), args...)
			res := result[linkbench.Result](t, daisy(t, args...))
			require.Equal(t, kind, res.Transport)
			pairs := res.Ranks * (res.Ranks - 1) / 2
			require.Len(t, res.Rows, 2*pairs+1+4*2)
			f, err := os.Open(curves)
			require.NoError(t, err)
			defer f.Close()
			_, err = png.Decode(f)
			require.NoError(t, err)
		})
	}
}

func TestBenchLinkTable(t *testing.T) {
	cmd := daisy(t, "bench", "link", "--local", "2", "--ops", "barrier,all-reduce", "--sizes", "64", "--budget", "1ms")
	out, err := cmd.Output()
	require.NoError(t, err)
	require.Equal(t, 4, strings.Count(string(out), "\n")-2, "%s", out) // two headings of two lines, two rows
	require.Contains(t, string(out), "all-reduce\n")
}

// TestBenchLinkPeer plays both machines, after a stranger was turned away.
func TestBenchLinkPeer(t *testing.T) {
	for _, flags := range [][]string{nil, {"--tls"}} {
		t.Run(fmt.Sprint(flags), func(t *testing.T) {
			listening := daisy(t, append([]string{"bench", "link", "--json", "--listen", "127.0.0.1:0"}, flags...)...)
			stderr, err := listening.StderrPipe()
			require.NoError(t, err)
			var out bytes.Buffer
			listening.Stdout = &out
			require.NoError(t, listening.Start())
			lines := bufio.NewScanner(stderr)
			require.True(t, lines.Scan())
			words := strings.Fields(lines.Text())
			require.Equal(t, "Waiting", words[0], lines.Text())
			address := words[2]

			stranger, err := net.Dial("tcp", address)
			require.NoError(t, err)
			fmt.Fprintf(stranger, "GET / HTTP/1.1\n")
			require.True(t, lines.Scan())
			require.Contains(t, lines.Text(), "Turned 127.0.0.1:")
			stranger.Close()

			args := append(append([]string{"bench", "link", "--peer", address}, shortLink...), flags...)
			res := result[linkbench.Result](t, daisy(t, args...))
			require.True(t, lines.Scan())
			require.Contains(t, lines.Text(), "Measuring with 127.0.0.1:")
			require.NoError(t, listening.Wait())
			var theirs linkbench.Result
			require.NoError(t, json.Unmarshal(out.Bytes(), &theirs))
			require.Equal(t, res, theirs)
			require.Len(t, res.Rows, 2+1+4*2)
		})
	}
}

func TestBenchLinkErrors(t *testing.T) {
	for says, args := range map[string][]string{
		"one of --local, --listen and --peer": {},
		"say what to measure":                 {"--local", "2", "--listen", ":0"},
		"--local 1 is not in 2..16":           {"--local", "1"},
		`--transport "pigeon" is not`:         {"--local", "2", "--transport", "pigeon"},
		"goes with --local only":              {"--listen", "127.0.0.1:0", "--transport", "mem"},
		"--tls does not go with":              {"--local", "2", "--transport", "mem", "--tls"},
		"--pin goes with":                     {"--listen", "127.0.0.1:0", "--pin"},
		`"1G" is no size`:                     {"--local", "2", "--sizes", "1G"},
		"multiple of 4":                       {"--local", "2", "--sizes", "5"},
		`no operation "gossip"`:               {"--local", "2", "--ops", "gossip"},
		"connection refused":                  {"--peer", "127.0.0.1:1"},
	} {
		cmd := daisy(t, append([]string{"bench", "link"}, args...)...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		require.Error(t, cmd.Run(), says)
		require.Equal(t, 1, cmd.ProcessState.ExitCode(), says)
		require.Contains(t, stderr.String(), says)
		last := strings.Split(strings.TrimSpace(stderr.String()), "\n")
		require.True(t, strings.HasPrefix(last[len(last)-1], "daisy: "), stderr.String())
		require.LessOrEqual(t, len(last), 2, stderr.String())
	}
}

func TestParseSize(t *testing.T) {
	for s, want := range map[string]int{"0": 0, "64": 64, " 16k": 16 << 10, "16K": 16 << 10, "8M": 8 << 20} {
		n, err := parseSize(s)
		require.NoError(t, err)
		require.Equal(t, want, n)
	}
	for _, s := range []string{"", "k", "-4", "1.5k", "8G", "99999999999999999999"} {
		_, err := parseSize(s)
		require.Error(t, err, s)
	}
}
