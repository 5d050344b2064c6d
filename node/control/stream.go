package control

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// sendTimeout bounds one Send: the other side reads at once, so a message that
// does not leave means that it hangs.
const sendTimeout = 10 * time.Second

// Stream carries the messages of one membership. Send may be called from
// several goroutines, Receive from one.
type Stream struct{ *Lines }

// Send sends one message. It blocks for ten seconds at most; an error means that
// the stream is of no use any more.
func (s *Stream) Send(m Message) error {
	line, err := encode(m)
	if err != nil {
		return err
	}
	return s.Lines.send(line)
}

// Receive blocks for the next message; the stream's end is io.EOF. Any error is
// final.
func (s *Stream) Receive() (Message, error) {
	line, err := s.Lines.Receive()
	if err != nil {
		return Message{}, err
	}
	return decode(line)
}

// Lines carries lines both ways between two nodes, over one HTTP/2 stream. Send
// may be called from several goroutines, Receive from one.
type Lines struct {
	peer   ed25519.PublicKey
	reader *bufio.Reader

	mu    sync.Mutex // guards write
	write func([]byte) error

	abortMu sync.Mutex         // guards abort
	abort   context.CancelFunc // makes Receive fail; nil when void
}

func newLines(peer ed25519.PublicKey, r io.Reader, write func([]byte) error, abort context.CancelFunc) *Lines {
	return &Lines{peer: peer, reader: bufio.NewReaderSize(r, maxMessage), write: write, abort: abort}
}

// PeerKey is the key that the other side has proved to hold.
func (s *Lines) PeerKey() ed25519.PublicKey { return s.peer }

// Send sends one line, which has no end of line in it. It blocks for ten seconds
// at most; an error means that the stream is of no use any more.
func (s *Lines) Send(line []byte) error {
	if len(line) >= maxMessage {
		return fmt.Errorf("a message of %d bytes is too long", len(line))
	}
	return s.send(append(slices.Clip(line), '\n'))
}

func (s *Lines) send(line []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	timer := time.AfterFunc(sendTimeout, s.Abort)
	defer timer.Stop()
	if err := s.write(line); err != nil {
		return fmt.Errorf("sending to the node: %w", err)
	}
	return nil
}

// Receive blocks for the next line, which is void at the next call; the stream's
// end is io.EOF. Any error is final.
func (s *Lines) Receive() ([]byte, error) {
	line, err := s.reader.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return nil, fmt.Errorf("a message of more than %d bytes", maxMessage)
	case err == io.EOF && len(line) == 0:
		return nil, io.EOF
	case err == io.EOF:
		return nil, io.ErrUnexpectedEOF
	}
	return line, err
}

// Abort makes Receive return with an error, and with it the other side's: at
// once on the side that opened the stream, where Send fails too; when the Group
// callback returns on the other. It does not block and may be called again.
func (s *Lines) Abort() {
	s.abortMu.Lock()
	defer s.abortMu.Unlock()
	if s.abort != nil {
		s.abort()
	}
}

// void makes Abort do nothing from now on.
func (s *Lines) void() {
	s.abortMu.Lock()
	defer s.abortMu.Unlock()
	s.abort = nil
}
