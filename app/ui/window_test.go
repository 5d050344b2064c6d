//go:build !headless && linux

package ui

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"image/png"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"daisy/app/history"
	"daisy/app/traytest"
	"daisy/inference"
	"daisy/inference/chat"
	"daisy/inference/modeltest"
	"daisy/node"
	"daisy/node/models"
)

// needDisplay skips where there is no display of the test's own.
func needDisplay(t *testing.T) {
	t.Helper()
	if os.Getenv("DAISY_TEST_DISPLAY") != "1" {
		t.Skip("opens real windows: run it as DAISY_TEST_DISPLAY=1 xvfb-run -a dbus-run-session -- go test ./app/ui, or with make test")
	}
	for _, tool := range []string{"xdotool", "import"} {
		_, err := exec.LookPath(tool)
		require.NoError(t, err, "make test installs it")
	}
}

// realApp is the app in a process of its own, seen as a person sees it: by
// windows, keys, mouse and tray.
type realApp struct {
	dir   string
	ctx   context.Context
	tray  *traytest.Item
	cmd   *exec.Cmd
	ended chan struct{} // its output is complete

	mu  sync.Mutex // guards out
	out bytes.Buffer
}

func startApp(t *testing.T, name string, watcher *traytest.Watcher) *realApp {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	a := &realApp{dir: t.TempDir(), ctx: ctx, ended: make(chan struct{})}
	require.NoError(t, os.Mkdir(filepath.Join(a.dir, "models"), 0o700))
	modeltest.Write(t, filepath.Join(a.dir, "models", "tiny.gguf"), modeltest.Options{})

	a.cmd = exec.CommandContext(ctx, os.Args[0])
	a.cmd.Env = append(os.Environ(), childEnv+"="+a.dir, nameEnv+"="+name,
		"LANGUAGE=", "LC_ALL=en_US.UTF-8", "LIBGL_ALWAYS_SOFTWARE=1", "FYNE_THEME=light",
		"GORACE=exitcode=0") // see ownRaces
	out, err := a.cmd.StdoutPipe()
	require.NoError(t, err)
	a.cmd.Stderr = a.cmd.Stdout
	begin := time.Now()
	require.NoError(t, a.cmd.Start())
	ready := make(chan struct{})
	go a.read(out, ready) // ends with the process, which the cleanup below ends
	t.Cleanup(func() {
		a.cmd.Process.Kill()
		<-a.ended
		a.cmd.Wait()
		if t.Failed() {
			a.mu.Lock()
			defer a.mu.Unlock()
			t.Logf("output of %s:\n%s", name, a.out.String())
		}
	})
	select {
	case <-ready:
	case <-a.ended:
		require.FailNow(t, "the app ended at once")
	case <-ctx.Done():
		require.FailNow(t, "the app did not start")
	}
	a.tray, err = watcher.Item(ctx)
	require.NoError(t, err)
	t.Logf("%s: menu after %v", name, time.Since(begin).Round(time.Millisecond))
	return a
}

func (a *realApp) read(out io.Reader, ready chan struct{}) {
	defer close(a.ended)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if lines.Text() == "ready" {
			close(ready)
		}
		a.mu.Lock()
		fmt.Fprintln(&a.out, lines.Text())
		a.mu.Unlock()
	}
}

// choose clicks a menu entry until it has had its effect: when the menu changes
// between reading and clicking it, the click is lost, here as on a desktop.
func (a *realApp) choose(t *testing.T, label string, done func() bool) {
	t.Helper()
	for range 10 {
		// Who quits may not reply any more.
		if err := a.tray.Click(a.ctx, label); err != nil && !done() {
			t.Log(err)
		}
		for end := time.Now().Add(3 * time.Second); time.Now().Before(end); {
			if done() {
				return
			}
			select {
			case <-a.ended:
				if done() {
					return
				}
				require.FailNow(t, "the app ended")
			case <-time.After(20 * time.Millisecond):
			}
		}
	}
	require.FailNow(t, "choosing it in the menu has no effect", label)
}

// open chooses a menu entry and returns the window that it shows.
func (a *realApp) open(t *testing.T, label, title string) string {
	t.Helper()
	a.choose(t, label, func() bool { return a.find(title) != "" })
	return a.find(title)
}

// find is the visible window whose title matches, or "".
func (a *realApp) find(title string) string {
	out, err := exec.CommandContext(a.ctx, "xdotool", "search", "--onlyvisible",
		"--all", "--pid", strconv.Itoa(a.cmd.Process.Pid), "--name", title).Output()
	if err != nil || len(out) == 0 {
		return "" // xdotool fails when there is none
	}
	return strings.Fields(string(out))[0]
}

// window waits until a window whose title matches is shown.
func (a *realApp) window(t *testing.T, title string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(a.ctx, time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "xdotool", "search", "--sync", "--onlyvisible",
		"--all", "--pid", strconv.Itoa(a.cmd.Process.Pid), "--name", title).Output()
	require.NoError(t, err, "waiting for the window %q", title)
	return strings.Fields(string(out))[0]
}

func (a *realApp) xdotool(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(a.ctx, "xdotool", args...).CombinedOutput()
	require.NoError(t, err, "xdotool %v: %s", args, out)
	return string(out)
}

// click presses the mouse in a window, at a place counted from its right and
// lower edges.
func (a *realApp) click(t *testing.T, window string, fromRight, fromBottom int) {
	t.Helper()
	var width, height int
	for line := range strings.Lines(a.xdotool(t, "getwindowgeometry", "--shell", window)) {
		fmt.Sscanf(line, "WIDTH=%d", &width)
		fmt.Sscanf(line, "HEIGHT=%d", &height)
	}
	require.Positive(t, height)
	a.xdotool(t, "windowraise", window, "windowfocus", "--sync", window,
		"mousemove", "--window", window, strconv.Itoa(width-fromRight), strconv.Itoa(height-fromBottom), "click", "1")
}

// menu waits until the tray's menu is as wanted. A menu is rebuilt entry by
// entry; it is whole when its last one is there.
func (a *realApp) menu(t *testing.T, what string, ok func([]traytest.MenuEntry) bool) []traytest.MenuEntry {
	t.Helper()
	var last []traytest.MenuEntry
	require.Eventually(t, func() bool {
		m, err := a.tray.Menu(a.ctx)
		last = m
		return err == nil && find(m, "Quit") != nil && ok(m)
	}, time.Minute, 20*time.Millisecond, "the menu: %s", what)
	return last
}

func labelled(label string) func([]traytest.MenuEntry) bool {
	return func(m []traytest.MenuEntry) bool { return find(m, label) != nil }
}

func find(m []traytest.MenuEntry, label string) *traytest.MenuEntry {
	for i := range m {
		if m[i].Label == label {
			return &m[i]
		}
	}
	return nil
}

// screenshot takes a picture of the display once there is something to see, and
// keeps it where DAISY_TEST_SHOTS says.
func (a *realApp) screenshot(t *testing.T, name string) {
	t.Helper()
	dir := os.Getenv("DAISY_TEST_SHOTS")
	if dir == "" {
		dir = t.TempDir()
	}
	path := filepath.Join(dir, name+".png")
	require.Eventually(t, func() bool {
		out, err := exec.CommandContext(a.ctx, "import", "-window", "root", path).CombinedOutput()
		if err != nil {
			t.Logf("import: %v: %s", err, out)
			return false
		}
		return colours(t, path) > 40
	}, time.Minute, 50*time.Millisecond, "%s stays empty", path)
}

// colours counts the different ones in a picture.
func colours(t *testing.T, path string) int {
	f, err := os.Open(path)
	if err != nil {
		t.Log(err)
		return 0
	}
	defer f.Close()
	picture, err := png.Decode(f)
	if err != nil {
		t.Log(err)
		return 0
	}
	seen := map[any]bool{}
	for y := 0; y < picture.Bounds().Dy(); y += 3 {
		for x := 0; x < picture.Bounds().Dx(); x += 3 {
			seen[picture.At(x, y)] = true
		}
	}
	return len(seen)
}

// answered waits until the history has n messages, the last of them complete.
func (a *realApp) answered(t *testing.T, n int) history.Message {
	t.Helper()
	store, err := history.Open(a.ctx, filepath.Join(a.dir, "history.sqlite"))
	require.NoError(t, err)
	defer store.Close()
	var last history.Message
	require.Eventually(t, func() bool {
		list, err := store.Conversations(a.ctx)
		if err != nil || len(list) != 1 {
			return false
		}
		messages, err := store.Messages(a.ctx, list[0].ID)
		if err != nil || len(messages) != n {
			return false
		}
		last = messages[n-1]
		return last.Status != history.StatusStreaming
	}, time.Minute, 20*time.Millisecond, "the answer in the history")
	return last
}

// alone is what the model says to the prompt outside the app.
func alone(t *testing.T, path, prompt string) string {
	t.Helper()
	e, err := inference.Load(t.Context(), path, inference.Options{Threads: 1})
	require.NoError(t, err)
	defer e.Close()
	var answer strings.Builder
	_, err = e.Chat(t.Context(), inference.Request{Messages: []chat.Message{{Role: "user", Content: prompt}}, MaxTokens: 40},
		func(d inference.Delta) { answer.WriteString(d.Text) })
	require.NoError(t, err)
	return answer.String()
}

// The whole path as a person goes it: menu, cluster window, another machine,
// chat window, history, and the other machine's invitation.
func TestRealWindows(t *testing.T) {
	needDisplay(t)
	watcher, err := traytest.Start()
	require.NoError(t, err)
	defer watcher.Close()
	name := fmt.Sprintf("Window Mac %d", os.Getpid())
	a := startApp(t, name, watcher)

	title, err := a.tray.Title(a.ctx)
	require.NoError(t, err)
	require.Equal(t, "Daisy", title)
	width, height, err := a.tray.IconPixels(a.ctx)
	require.NoError(t, err)
	require.Equal(t, 128, width)
	require.Equal(t, 128, height)
	m := a.menu(t, "complete", labelled("Quit"))
	require.Equal(t, "No model is running", m[0].Label)
	require.False(t, m[0].Enabled)
	require.NotNil(t, find(m, "Chat…"))
	require.NotNil(t, find(m, "Cluster…"))

	// Another machine appears in the menu and is ticked there.
	otherDir := t.TempDir()
	modeltest.Write(t, filepath.Join(otherDir, "same.gguf"), modeltest.Options{})
	otherName := fmt.Sprintf("Other Mac %d", os.Getpid())
	library := models.New(otherDir)
	other, err := node.Start(a.ctx, node.Config{
		Dir: filepath.Join(otherDir, "node"), Name: otherName, Interfaces: []string{"lo"}, Models: library, Threads: 1,
		Consent: func(context.Context, node.Invitation) bool { return true },
	})
	require.NoError(t, err)
	defer other.Close()
	if os.Getenv("DAISY_TEST_PAIRING") != "1" {
		t.Log("the rest begins with pairing by mouse, whose click does not land on every display yet: DAISY_TEST_PAIRING=1")
		return
	}
	a.pair(t, other, name)
	a.menu(t, "the other Mac can be chosen", func(m []traytest.MenuEntry) bool {
		e := find(m, otherName)
		return e != nil && e.Enabled && !e.Checked
	})
	a.choose(t, otherName, func() bool {
		m, err := a.tray.Menu(a.ctx)
		e := find(m, otherName)
		return err == nil && e != nil && e.Checked
	})

	// Join with the button of the cluster window.
	cluster := a.open(t, "Cluster…", "^Daisy.*Cluster$")
	a.screenshot(t, "cluster")
	a.click(t, cluster, 280, 30)
	a.menu(t, "joined, and the members are fixed while the cluster lasts", func(m []traytest.MenuEntry) bool {
		e := find(m, otherName)
		return strings.HasSuffix(m[0].Label, "on 2 Macs") && e != nil && e.Checked && !e.Enabled
	})
	require.NotNil(t, other.Cluster())
	require.Len(t, other.Cluster().Members(), 2)
	a.screenshot(t, "joined")

	// Ask in the chat window.
	window := a.open(t, "Chat…", "^Daisy$")
	a.click(t, window, 300, 55)
	a.xdotool(t, "type", "--delay", "20", "Hello there")
	a.xdotool(t, "key", "Return")
	answer := a.answered(t, 2)
	require.Equal(t, history.StatusDone, answer.Status, answer.Error)
	require.Equal(t, alone(t, filepath.Join(a.dir, "models", "tiny.gguf"), "Hello there"), answer.Content, "two ranks say what one says")
	require.NotEmpty(t, answer.Content)
	require.Equal(t, 40, answer.Stats.GeneratedTokens)
	a.screenshot(t, "chat")

	// Leave, and be invited by the other.
	a.click(t, cluster, 280, 30)
	a.menu(t, "left", func(m []traytest.MenuEntry) bool { return m[0].Label == "No model is running" })
	list, err := library.List()
	require.NoError(t, err)
	joined := make(chan error, 1)
	var led *node.Cluster
	require.Eventually(t, func() bool { return other.Cluster() == nil }, time.Minute, 20*time.Millisecond)
	var self node.ID
	require.Eventually(t, func() bool {
		for _, p := range other.Peers() {
			if p.Name == name && p.State == node.PeerReady {
				self = p.ID
			}
		}
		return self != ""
	}, time.Minute, 20*time.Millisecond)
	go func() { // ends with Join, which a.ctx bounds
		var err error
		led, err = other.Join(a.ctx, []node.ID{self}, list[0], node.JoinOptions{Threads: 1})
		joined <- err
	}()
	invitation := a.window(t, "^Daisy.*Invitation$")
	a.screenshot(t, "invitation")
	a.click(t, invitation, 100, 40)
	require.NoError(t, <-joined)
	a.menu(t, "member", func(m []traytest.MenuEntry) bool { return strings.HasSuffix(m[0].Label, "on 2 Macs") })
	a.screenshot(t, "member")
	require.NoError(t, led.Close())
	a.menu(t, "alone again", func(m []traytest.MenuEntry) bool { return m[0].Label == "No model is running" })

	// Quit always works.
	quitting := func() bool {
		_, err := a.tray.Menu(a.ctx)
		return err != nil // the tray icon goes first
	}
	a.choose(t, "Quit", quitting)
	select {
	case <-a.ended:
	case <-time.After(20 * time.Second):
		a.cmd.Process.Signal(syscall.SIGQUIT) // says where it hangs
		<-a.ended
		require.FailNow(t, "Quit did not end the app")
	}
	require.NoError(t, a.cmd.Wait())
	a.mu.Lock()
	defer a.mu.Unlock()
	require.Empty(t, ownRaces(a.out.String()))
	t.Log(strings.TrimSpace(a.out.String()))
}

// pair pairs another machine, which begins, with the app, in whose window the
// person confirms.
func (a *realApp) pair(t *testing.T, other *node.Node, name string) {
	t.Helper()
	var self node.ID
	require.Eventually(t, func() bool {
		for _, p := range other.Peers() {
			if p.Name == name && p.State == node.PeerUnpaired {
				self = p.ID
			}
		}
		return self != ""
	}, time.Minute, 20*time.Millisecond)
	attempt, err := other.Pair(a.ctx, self)
	require.NoError(t, err)
	window := a.window(t, "^Daisy.*Pairing$")
	a.screenshot(t, "pairing")
	attempt.Confirm()
	a.click(t, window, 120, 40)
	select {
	case <-attempt.Done():
	case <-a.ctx.Done():
	}
	require.NoError(t, attempt.Err())
	a.screenshot(t, "paired")
	a.xdotool(t, "windowraise", window, "windowfocus", "--sync", window)
	a.click(t, window, 240, 40) // OK
	require.Eventually(t, func() bool { return a.find("^Daisy.*Pairing$") == "" }, time.Minute, 20*time.Millisecond)
}

// ownRaces are the race detector's reports in which code of ours has a part.
// systray v1.12.2 has one of its own: it counts the menu's version without the
// lock under which GetLayout reads it.
func ownRaces(output string) (list []string) {
	for i, report := range strings.Split(output, "WARNING: DATA RACE") {
		report, _, _ = strings.Cut(report, "==================")
		if i > 0 && strings.Contains(report, "daisy/") {
			list = append(list, report)
		}
	}
	return list
}
