package history

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// A presence is a lock file that every open Store shares.
type presence struct{ file *os.File }

// enter opens the lock file and says whether nobody else holds it; then it is
// held exclusively until share is called. It waits while another process is
// alone in its Open, at most until ctx ends.
func enter(ctx context.Context, path string) (p *presence, alone bool, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, false, err
	}
	p = &presence{file: f}
	switch err := p.flock(syscall.LOCK_EX | syscall.LOCK_NB); {
	case err == nil:
		return p, true, nil
	case !errors.Is(err, syscall.EWOULDBLOCK):
		p.leave()
		return nil, false, fmt.Errorf("locking %s: %w", path, err)
	}
	// Somebody is there. A shared lock is refused only for the moment in which
	// another Store opens.
	for {
		err := p.flock(syscall.LOCK_SH | syscall.LOCK_NB)
		if err == nil {
			return p, false, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			p.leave()
			return nil, false, fmt.Errorf("locking %s: %w", path, err)
		}
		select {
		case <-ctx.Done():
			p.leave()
			return nil, false, fmt.Errorf("the history is being opened by another process: %w", ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// share turns an exclusive lock into a shared one.
func (p *presence) share() error { return p.flock(syscall.LOCK_SH) }

func (p *presence) leave() { p.file.Close() } // closing drops the lock

func (p *presence) flock(how int) error {
	for {
		err := syscall.Flock(int(p.file.Fd()), how)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
