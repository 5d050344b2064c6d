package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"daisy/node"
	"daisy/node/pairing"
)

// maxClients at once; this user has no more terminals.
const maxClients = 16

// Server answers commands for a running node.
type Server struct {
	node     *node.Node
	listener net.Listener
	ctx      context.Context // ends with Close
	cancel   context.CancelFunc
	work     sync.WaitGroup
}

// Serve lets commands reach the node, which holds the folder. The node stays the
// caller's, who closes the Server first.
func Serve(n *node.Node, dir string) (*Server, error) {
	path, err := socketPath(dir)
	if err != nil {
		return nil, err
	}
	// The folder's lock is the node's, so a socket that is there is a dead one's.
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	if err := private(filepath.Dir(path)); err != nil {
		return nil, err
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listening for commands: %w", err)
	}
	s := &Server{node: n, listener: listener}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.work.Go(s.accept)
	return s, nil
}

// Close ends all clients' connections and waits for what serves them.
func (s *Server) Close() {
	s.cancel()
	s.listener.Close()
	s.work.Wait()
}

func (s *Server) accept() {
	slots := make(chan struct{}, maxClients)
	for {
		conn, err := s.listener.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // out of descriptors, say
			select {
			case <-s.ctx.Done():
			case <-time.After(100 * time.Millisecond):
			}
			continue
		}
		select {
		case slots <- struct{}{}:
		default:
			conn.Close()
			continue
		}
		s.work.Go(func() { // accept itself is still in work
			defer func() { <-slots }()
			defer conn.Close()
			defer context.AfterFunc(s.ctx, func() { conn.Close() })()
			s.serve(newLines(conn))
		})
	}
}

// serve answers one request; what cannot be sent, nobody waits for.
func (s *Server) serve(l *lines) {
	var r request
	if err := l.receive(&r); err != nil {
		return
	}
	var err error
	switch r.Command {
	case cmdNodes:
		_ = l.send(reply{Rows: rowsOf(s.node.Peers(), s.node.Trusted())})
		return
	case cmdPair:
		err = s.pair(l, r)
	case cmdForget, cmdConsent:
		var id node.ID
		if id, err = s.trusted(r.Node); err == nil {
			if r.Command == cmdForget {
				err = s.node.Forget(id)
			} else {
				err = s.node.SetConsent(id, r.Consent)
			}
		}
	default:
		err = fmt.Errorf("no such command: %.40q", r.Command)
	}
	if err != nil {
		_ = l.send(reply{Error: err.Error()})
		return
	}
	_ = l.send(reply{Done: true})
}

// pair goes through a pairing with a person at the other end of the socket.
func (s *Server) pair(l *lines, r request) error {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	spoken := make(chan decision)
	reading := make(chan struct{})
	go func() { // awaited below; ends with the connection
		defer close(reading)
		defer cancel() // nobody is there any more
		var d decision
		for l.receive(&d) == nil {
			select {
			case spoken <- d:
			case <-ctx.Done():
				return
			}
		}
	}()
	defer func() {
		cancel()
		_ = l.SetReadDeadline(time.Unix(1, 0))
		<-reading
	}()
	attempt, err := s.attempt(ctx, r)
	if err != nil {
		return err
	}
	if err := l.send(reply{Attempt: describe(attempt, s.node.Trusted())}); err != nil {
		s.abandon(attempt)
		return err
	}
	var wrong error
	for {
		select {
		case d := <-spoken:
			switch {
			case d.Digits != "":
				wrong = attempt.Enter(d.Digits)
			case d.Yes:
				attempt.Confirm()
			default:
				attempt.Refuse()
			}
		case <-attempt.Done():
			if wrong != nil {
				return wrong
			}
			return attempt.Err()
		case <-ctx.Done():
			s.abandon(attempt)
			return errGone
		}
	}
}

// abandon refuses a pairing whose terminal is gone; one that another node began
// may be confirmed elsewhere.
func (s *Server) abandon(a *pairing.Attempt) {
	if !a.Incoming {
		a.Refuse()
	}
}
