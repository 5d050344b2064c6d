package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"daisy/app/session"
)

func TestStandingIsKept(t *testing.T) {
	dir := t.TempDir()
	require.Equal(t, &session.Standing{Chat: true}, stoodAt(dir), "without a file there is the chat")
	k := keeper{path: standingPath(dir)}
	s := session.Standing{Chat: true, Cluster: true, Conversation: 7, Running: []int64{7, 9}, Model: "/m.gguf", Members: []string{"a", "b"}}
	k.keep(s)
	require.Equal(t, &s, stoodAt(dir))
	before, err := os.Stat(standingPath(dir))
	require.NoError(t, err)
	k.keep(s)
	after, err := os.Stat(standingPath(dir))
	require.NoError(t, err)
	require.True(t, os.SameFile(before, after), "what is no news is not written")
	s.Members = nil
	k.keep(s)
	require.Equal(t, &s, stoodAt(dir))

	for _, bad := range []string{"", "{", `{"chat": "yes"}`, strings.Repeat(" ", maxStanding) + "{}"} {
		require.NoError(t, os.WriteFile(standingPath(dir), []byte(bad), 0o600))
		require.Equal(t, &session.Standing{Chat: true}, stoodAt(dir))
	}
	k.forget()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)
}

// Three starts in ten minutes, and then no more until they are past.
func TestComeBackIsNoLoop(t *testing.T) {
	log := comebackLog{filepath.Join(t.TempDir(), "comeback.log")}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	starts := 0
	start := func() (string, error) { starts++; return "process 1", nil }
	var said strings.Builder
	for range mostComebacks {
		require.NoError(t, log.comeBack(now, start, io.Discard))
		now = now.Add(time.Minute)
	}
	require.NoError(t, log.comeBack(now, start, &said))
	require.NoError(t, log.comeBack(now.Add(time.Second), start, io.Discard))
	require.Equal(t, mostComebacks, starts)
	require.Contains(t, said.String(), "left alone")

	now = now.Add(comebackWindow - 3*time.Minute) // the first of them is not counted any more
	require.NoError(t, log.comeBack(now, start, io.Discard))
	require.NoError(t, log.comeBack(now, start, io.Discard))
	require.Equal(t, mostComebacks+1, starts)

	now = now.Add(comebackWindow)
	fails := errors.New("no such file")
	require.ErrorIs(t, log.comeBack(now, func() (string, error) { return "", fails }, &said), fails)
	require.Contains(t, said.String(), "could not be started again: no such file")
	lines := log.read()
	require.Len(t, lines, 8)
	require.Zero(t, countSince(lines, now), "what did not start does not count")

	for range 2 * logLines {
		require.NoError(t, log.comeBack(now, start, io.Discard))
	}
	require.Len(t, log.read(), logLines)
	require.Zero(t, countSince([]string{"", "x", "2026-13-01T00:00:00Z " + startedAs, startedAs}, time.Time{}))
}

func TestAgainCommand(t *testing.T) {
	args := []string{"--back", "--name", "Mac"}
	for _, c := range []struct{ system, exe, want string }{
		{"linux", "/usr/bin/daisy", "/usr/bin/daisy --name Mac --back"},
		{"darwin", "/opt/daisy", "/opt/daisy --name Mac --back"},
		{"darwin", "/Applications/Daisy.app/Contents/MacOS/daisy", "/usr/bin/open -n /Applications/Daisy.app --args --name Mac --back"},
		{"linux", "/x.app/Contents/MacOS/daisy", "/x.app/Contents/MacOS/daisy --name Mac --back"},
	} {
		name, argv := againCommand(c.system, c.exe, args)
		require.Equal(t, c.want, strings.Join(append([]string{name}, argv...), " "))
	}
	require.Equal(t, []string{"--back", "--name", "Mac"}, args)
}

// A byte ends the watcher, and nothing is started.
func TestWatcherOfALivingApp(t *testing.T) {
	cmd := daisy(t, "watch", "--app", "1", "--", "--version")
	cmd.Stdin = strings.NewReader("q")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Empty(t, out)
}
