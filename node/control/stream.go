package control

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// sendTimeout bounds one Send: the other side reads at once, so a message that
// does not leave means that it hangs.
const sendTimeout = 10 * time.Second

// Stream carries the messages of one membership. Send may be called from
// several goroutines, Receive from one.
type Stream struct {
	reader *bufio.Reader

	mu    sync.Mutex // guards write
	write func([]byte) error

	abortMu sync.Mutex         // guards abort
	abort   context.CancelFunc // makes Receive fail; nil when void
}

func newStream(r io.Reader, write func([]byte) error, abort context.CancelFunc) *Stream {
	return &Stream{reader: bufio.NewReaderSize(r, maxMessage), write: write, abort: abort}
}

// Send sends one message. It blocks for ten seconds at most; an error means that
// the stream is of no use any more.
func (s *Stream) Send(m Message) error {
	line, err := encode(m)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	timer := time.AfterFunc(sendTimeout, s.Abort)
	defer timer.Stop()
	if err := s.write(line); err != nil {
		return fmt.Errorf("sending to the node: %w", err)
	}
	return nil
}

// Receive blocks for the next message; the stream's end is io.EOF. Any error is
// final.
func (s *Stream) Receive() (Message, error) {
	line, err := s.reader.ReadSlice('\n')
	switch {
	case errors.Is(err, bufio.ErrBufferFull):
		return Message{}, fmt.Errorf("a message of more than %d bytes", maxMessage)
	case err == io.EOF && len(line) == 0:
		return Message{}, io.EOF
	case err == io.EOF:
		return Message{}, io.ErrUnexpectedEOF
	case err != nil:
		return Message{}, err
	}
	return decode(line)
}

// Abort makes Receive return with an error, and with it the other side's: at
// once on the side that opened the stream, where Send fails too; when the Group
// callback returns on the other. It does not block and may be called again.
func (s *Stream) Abort() {
	s.abortMu.Lock()
	defer s.abortMu.Unlock()
	if s.abort != nil {
		s.abort()
	}
}

// void makes Abort do nothing from now on.
func (s *Stream) void() {
	s.abortMu.Lock()
	defer s.abortMu.Unlock()
	s.abort = nil
}
