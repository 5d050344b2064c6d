package local

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"daisy/node"
	"daisy/node/pairing"
	"daisy/node/trust"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 20 * time.Second

func loopback(t *testing.T) string {
	t.Helper()
	list, err := net.Interfaces()
	require.NoError(t, err)
	for _, i := range list {
		if i.Flags&net.FlagLoopback != 0 {
			return i.Name
		}
	}
	require.FailNow(t, "there is no loopback interface")
	return ""
}

// start runs a node that commands reach.
func start(t *testing.T, name string) (*node.Node, string) {
	t.Helper()
	dir := t.TempDir()
	n, err := node.Start(t.Context(), node.Config{Dir: dir, Name: name, Interfaces: []string{loopback(t)}})
	require.NoError(t, err)
	t.Cleanup(func() { n.Close() })
	s, err := Serve(n, dir)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return n, dir
}

func dial(t *testing.T, dir string) *Client {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	c, err := Dial(ctx, dir)
	require.NoError(t, err)
	t.Cleanup(func() {
		c.Close()
		cancel()
	})
	return c
}

func row(t *testing.T, dir string, id node.ID) Row {
	t.Helper()
	rows, err := dial(t, dir).Nodes()
	require.NoError(t, err)
	for _, r := range rows {
		if r.ID == id {
			return r
		}
	}
	return Row{}
}

// Two terminals, one on each side.
func TestPairFromTerminals(t *testing.T) {
	a, dirA := start(t, "Term A")
	b, dirB := start(t, "Term B")
	first, second := dial(t, dirA), dial(t, dirB)
	waited := make(chan Attempt, 1)
	go func() { // awaited below
		got, err := second.Pair("", patience)
		assert.NoError(t, err)
		waited <- got
	}()
	here, err := first.Pair("term b", patience)
	require.NoError(t, err)
	there := <-waited
	assert.Equal(t, here.Digits, there.Digits)
	assert.Equal(t, "Term A", there.Name)
	assert.True(t, there.Incoming)
	done := make(chan error, 1)
	go func() { done <- first.Decide(true, "") }()
	require.NoError(t, second.Decide(false, here.Digits))
	require.NoError(t, <-done)

	require.Eventually(t, func() bool {
		return row(t, dirA, b.Self().ID).State == string(node.PeerReady) && row(t, dirB, a.Self().ID).State == string(node.PeerReady)
	}, patience, 20*time.Millisecond, "both list each other as paired")
	require.NoError(t, dial(t, dirA).SetConsent("Term B", trust.Never))
	got := row(t, dirA, b.Self().ID)
	assert.Equal(t, trust.Never, got.Consent)
	assert.NotNil(t, got.Since)
	require.ErrorContains(t, dial(t, dirA).SetConsent("Nobody", trust.Never), "not paired")

	require.NoError(t, b.Close())
	require.Eventually(t, func() bool {
		s := row(t, dirA, b.Self().ID).State
		return s == StateAbsent || s == string(node.PeerUnreachable)
	}, patience, 20*time.Millisecond, "who is away is still listed")
	require.NoError(t, dial(t, dirA).Forget(string(b.Self().ID)))
	assert.Empty(t, a.Trusted())
}

func TestWrongDigits(t *testing.T) {
	a, dirA := start(t, "Wrong A")
	b, _ := start(t, "Wrong B")
	c := dial(t, dirA)
	got, err := c.Pair(b.Self().Addrs[0].String(), 0)
	require.NoError(t, err)
	wrong := "000000"
	if got.Digits == wrong {
		wrong = "000001"
	}
	require.EqualError(t, c.Decide(true, wrong), pairing.ErrDigits.Error())
	assert.Empty(t, a.Trusted())
	_, err = dial(t, dirA).Pair("Wrong B", 0)
	require.ErrorContains(t, err, "pairings failed")
	_, err = dial(t, dirA).Pair("Not there", 0)
	require.ErrorContains(t, err, "no node Not there was found")
	_, err = dial(t, dirA).Pair("", 0)
	require.ErrorContains(t, err, "nobody began")
	_, err = dial(t, dirA).Pair(a.Self().Addrs[0].String(), 0)
	require.ErrorContains(t, err, "this node itself")
}

// A terminal that is closed takes its pairing with it, if it began it.
func TestTerminalGone(t *testing.T) {
	_, dirA := start(t, "Gone A")
	b, dirB := start(t, "Gone B")
	c := dial(t, dirA)
	_, err := c.Pair(b.Self().Addrs[0].String(), 0)
	require.NoError(t, err)
	d := dial(t, dirB)
	_, err = d.Pair("Gone A", patience)
	require.NoError(t, err)
	require.NoError(t, d.Close())
	attempt := b.Pairing()
	require.NotNil(t, attempt, "this one may be confirmed elsewhere")
	require.NoError(t, c.Close())
	select {
	case <-attempt.Done():
	case <-time.After(patience):
		require.FailNow(t, "the pairing stays")
	}
	require.ErrorIs(t, attempt.Err(), pairing.ErrPeerRefused)
}

// What is no request, or is never one, harms nobody.
func TestStrayClients(t *testing.T) {
	_, dir := start(t, "Stray")
	path, err := socketPath(dir)
	require.NoError(t, err)
	for text, want := range map[string]string{
		"":                                  "",
		"nonsense\n":                        "",
		`{"command":"shutdown"}` + "\n":     "no such command",
		strings.Repeat("x", maxLine) + "\n": "",
	} {
		c, err := net.Dial("unix", path)
		require.NoError(t, err)
		_, _ = c.Write([]byte(text))
		require.NoError(t, c.(*net.UnixConn).CloseWrite())
		require.NoError(t, c.SetDeadline(time.Now().Add(patience)))
		var r reply
		err = newLines(c).receive(&r)
		if want == "" {
			require.Error(t, err)
		} else {
			require.Contains(t, r.Error, want)
		}
		c.Close()
	}
}

func TestNotRunning(t *testing.T) {
	dir := t.TempDir()
	_, err := Dial(t.Context(), dir)
	require.ErrorIs(t, err, ErrNotRunning)
	n, running := start(t, "Running")
	path, err := socketPath(running)
	require.NoError(t, err)
	info, err := os.Stat(filepath.Dir(path))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o700), info.Mode().Perm())

	// A socket that a killed process left is in nobody's way.
	require.NoError(t, os.Mkdir(filepath.Join(dir, "run"), 0o700))
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "run", "daisy.sock")})
	require.NoError(t, err)
	l.SetUnlinkOnClose(false)
	require.NoError(t, l.Close())
	_, err = Dial(t.Context(), dir)
	require.ErrorIs(t, err, ErrNotRunning)
	s, err := Serve(n, dir)
	require.NoError(t, err)
	s.Close()
	_, err = Dial(t.Context(), dir)
	require.ErrorIs(t, err, ErrNotRunning)

	require.NoError(t, os.Chmod(filepath.Join(dir, "run"), 0o755))
	_, err = Dial(t.Context(), dir)
	require.ErrorContains(t, err, "this user alone")
	_, err = Serve(n, dir)
	require.ErrorContains(t, err, "this user alone")
}

func TestLongFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	path, err := socketPath(dir)
	require.NoError(t, err)
	assert.Less(t, len(path), maxPath)
	other, err := socketPath(dir + "er")
	require.NoError(t, err)
	assert.NotEqual(t, path, other)
}
