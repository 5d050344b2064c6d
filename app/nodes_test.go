package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"daisy/app/local"
	"daisy/node"
	"daisy/node/trust"
)

// served is a daisy serve in a process of its own.
type served struct {
	dir   string
	name  string
	id    string
	addr  string
	lines *bufio.Scanner
}

func startServe(t *testing.T, args ...string) *served {
	t.Helper()
	s := &served{dir: t.TempDir()}
	s.name = fmt.Sprintf("%s of %d", t.Name(), os.Getpid())
	cmd := daisy(t, append([]string{"serve", "--json", "--dir", s.dir, "--name", s.name, "--interface", loopback()}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		assert.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		_, _ = io.Copy(io.Discard, out)
		assert.NoError(t, cmd.Wait(), "it ends in good order")
	})
	s.lines = bufio.NewScanner(out)
	said := s.next(t)
	require.Equal(t, "listening", said.Event)
	s.id, s.addr = string(said.ID), said.Address[0]
	return s
}

func (s *served) next(t *testing.T) (said serving) {
	t.Helper()
	require.True(t, s.lines.Scan(), "it ended")
	require.NoError(t, json.Unmarshal(s.lines.Bytes(), &said))
	return said
}

// terminal runs daisy pair and returns its first line with the digits.
func pairTerminal(t *testing.T, args ...string) (*exec.Cmd, *bufio.Scanner, io.WriteCloser, local.Attempt) {
	t.Helper()
	cmd := daisy(t, append([]string{"pair", "--json", "--interface", loopback()}, args...)...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan(), "no digits")
	var a local.Attempt
	require.NoError(t, json.Unmarshal(lines.Bytes(), &a))
	return cmd, lines, in, a
}

func (s *served) rows(t *testing.T) []local.Row {
	t.Helper()
	return result[[]local.Row](t, daisy(t, "nodes", "--json", "--dir", s.dir))
}

func rowOf(rows []local.Row, name string) local.Row {
	for _, r := range rows {
		if r.Name == name {
			return r
		}
	}
	return local.Row{}
}

// Two nodes without a screen, a terminal on each: the digits of one are typed on
// the other.
func TestPairHeadless(t *testing.T) {
	b := startServe(t)
	own := t.TempDir() // no node runs here: daisy pair starts one
	first, lines, in, a := pairTerminal(t, "--dir", own, "--name", "Visitor", b.addr)
	require.Equal(t, b.id, string(a.ID))
	said := b.next(t)
	require.Equal(t, "pairing", said.Event)
	require.Equal(t, a.Digits, said.Digits)
	require.Equal(t, "Visitor", said.Name)

	var words strings.Builder
	second := daisy(t, "pair", "visitor", "--dir", b.dir, "--yes-code", a.Digits)
	second.Stdout, second.Stderr = &words, &words
	require.NoError(t, second.Start())
	_, err := io.WriteString(in, "y\n")
	require.NoError(t, err)
	require.NoError(t, second.Wait(), words.String())
	require.Contains(t, words.String(), "Visitor ("+string(said.ID.Short())+") wants to pair with this machine.")
	require.Contains(t, words.String(), a.Digits[:3]+" "+a.Digits[3:])
	require.Contains(t, words.String(), "Paired with Visitor")
	require.True(t, lines.Scan())
	require.JSONEq(t, fmt.Sprintf(`{"paired":true,"id":%q,"name":%q}`, b.id, b.name), lines.Text())
	require.NoError(t, first.Wait())

	visitor := rowOf(b.rows(t), "Visitor")
	require.True(t, visitor.Paired)
	require.Equal(t, trust.Ask, visitor.Consent)
	// The node that is started for the moment finds it again, and may change what
	// it may do.
	words.Reset()
	list := daisy(t, "nodes", "--dir", own, "--interface", loopback(), "--always", b.id)
	list.Stdout, list.Stderr = &words, os.Stderr
	require.NoError(t, list.Run())
	require.Contains(t, words.String(), b.name+"  "+b.id[:8]+"  paired (invitations: always)")
	require.NoError(t, daisy(t, "nodes", "--dir", b.dir, "--forget", "Visitor").Run())
	require.False(t, rowOf(b.rows(t), "Visitor").Paired)
}

// Somebody who types other digits than this machine's pairs with nobody.
func TestPairWrongCode(t *testing.T) {
	b := startServe(t)
	var words strings.Builder
	cmd := daisy(t, "pair", "--dir", t.TempDir(), "--interface", loopback(), "--yes-code", "12345", b.addr)
	cmd.Stdout, cmd.Stderr = io.Discard, &words
	require.Error(t, cmd.Run())
	require.Equal(t, "daisy: these are not the digits of this pairing\n", words.String())
	for _, r := range b.rows(t) {
		require.False(t, r.Paired)
	}
}

// With --pair-once the first is trusted, and nobody after it.
func TestPairOnce(t *testing.T) {
	b := startServe(t, "--pair-once")
	for i, first := range []bool{true, false} {
		cmd, lines, in, a := pairTerminal(t, "--dir", t.TempDir(), "--name", fmt.Sprint("Visitor ", i), b.addr)
		require.Equal(t, a.Digits, b.next(t).Digits)
		_, err := io.WriteString(in, "y\n")
		require.NoError(t, err)
		if first {
			require.True(t, lines.Scan())
			require.NoError(t, cmd.Wait())
			continue
		}
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		require.Error(t, cmd.Wait())
	}
	rows := b.rows(t)
	require.True(t, rowOf(rows, "Visitor 0").Paired)
	require.False(t, rowOf(rows, "Visitor 1").Paired)
}

func TestStatesInWords(t *testing.T) {
	for want, p := range map[string]node.Peer{
		"found, not reached yet":                  {State: node.PeerFound},
		"not paired":                              {State: node.PeerUnpaired},
		"paired":                                  {State: node.PeerReady, Paired: true},
		"paired, in this cluster":                 {State: node.PeerMember, Paired: true},
		"in this cluster, not paired":             {State: node.PeerMember},
		"paired, in another cluster":              {State: node.PeerBusy, Reason: "in another cluster", Paired: true},
		"refused: it does not know this node":     {State: node.PeerRefused, Reason: "it does not know this node"},
		"unreachable because it does not answer":  {State: node.PeerUnreachable, Reason: "it does not answer"},
		"version differs: it speaks version 2 of": {State: node.PeerIncompatible, Reason: "it speaks version 2 of"},
	} {
		require.Equal(t, want, stateWords(p))
	}
	var words strings.Builder
	printRows(&words, nil)
	require.Contains(t, words.String(), "No other nodes")
	words.Reset()
	printRows(&words, []local.Row{{ID: "abcdefghijk", Name: "Küche", State: local.StateAbsent, Consent: trust.Never}, {ID: "b", Name: "Attic 1", State: "unpaired"}})
	require.Equal(t, "Küche    abcdefgh  paired, not found in the network (invitations: never)\nAttic 1  b  not paired\n", words.String())
}
