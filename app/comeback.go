package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"daisy/app/session"
)

// The app comes back by itself when its process dies, as a fault in the RDMA
// provider makes it: see docs/adr/0002-faults-in-the-rdma-provider.md. A lifeline
// is the app's end of the pipe to the watcher, another process of this program
// (`daisy watch`) that starts the app again when the pipe ends without a word.
type lifeline struct {
	pipe    *os.File
	watcher *exec.Cmd
}

// watcherLeaves is how long an orderly end waits for the watcher.
const watcherLeaves = 3 * time.Second

// watchOver starts the watcher of this process. args are those to start the app
// with again.
func watchOver(dir string, args []string) (*lifeline, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("starting the watcher: %w", err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("starting the watcher: %w", err)
	}
	defer r.Close()
	cmd := exec.Command(exe, append([]string{"watch", "--dir", dir, "--app", strconv.Itoa(os.Getpid()), "--"}, args...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = r, os.Stdout, os.Stderr
	cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true} // what ends the terminal's programs is not for it
	if err := cmd.Start(); err != nil {
		w.Close()
		return nil, fmt.Errorf("starting the watcher: %w", err)
	}
	return &lifeline{w, cmd}, nil
}

// let tells the watcher that this process ends in order, and waits for its end.
func (l *lifeline) let() {
	if l == nil {
		return
	}
	_, _ = l.pipe.Write([]byte{'q'}) // fails when the watcher has ended already
	l.pipe.Close()
	late := time.AfterFunc(watcherLeaves, func() { _ = l.watcher.Process.Kill() })
	_ = l.watcher.Wait() // how it ended does not matter any more
	late.Stop()
}

// keeper writes how the app stands to a file, for the start after a fault.
type keeper struct {
	path string

	mu   sync.Mutex // guards the field below, and the file
	last *session.Standing
}

func standingPath(dir string) string { return filepath.Join(dir, "standing.json") }

// maxStanding bounds what is read of the file.
const maxStanding = 1 << 20

// keep writes s if it is news. It blocks for a small write and no sync: the file
// is to outlive the process, not the machine.
func (k *keeper) keep(s session.Standing) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.last != nil && k.last.Equal(s) {
		return
	}
	data, err := json.Marshal(s)
	if err == nil {
		err = os.WriteFile(k.path+".new", data, 0o600)
	}
	if err == nil {
		err = os.Rename(k.path+".new", k.path)
	}
	if err == nil {
		k.last = &s // else the next change tries again
	}
}

// forget removes the file: an orderly end leaves nothing to come back to.
func (k *keeper) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	_ = os.Remove(k.path)
}

// stoodAt reads how the app stood when it died. Without a readable file it comes
// back with the chat window.
func stoodAt(dir string) *session.Standing {
	s := &session.Standing{Chat: true}
	f, err := os.Open(standingPath(dir))
	if err != nil {
		return s
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxStanding))
	var read session.Standing
	if err != nil || json.Unmarshal(data, &read) != nil {
		return s
	}
	return &read
}

// waitForDeath blocks until the watched process, this one's parent, is gone with
// its files and locks: the pipe's end alone may be seen a moment before.
func waitForDeath(ctx context.Context, app int) error {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for os.Getppid() == app {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.New("the app closed its pipe and lives on")
		}
	}
	return nil
}
