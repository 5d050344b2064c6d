package verbs

import (
	"sync"

	"daisy/rdma"
)

// A mixedSender sends long messages to one peer while the caller of SendRecv
// receives from another, of which one is on verbs and one on the base. Its
// goroutine belongs to the transport, which waits for it in Close.
type mixedSender struct {
	mu   sync.Mutex // one SendRecv at a time
	work chan mixedMessage
	sent chan error
}

type mixedMessage struct {
	tag rdma.Tag
	p   []byte
}

func (t *Transport) startMixed() {
	t.mixed = make([]*mixedSender, len(t.pairs))
	for r := range t.pairs {
		if r == t.Rank() {
			continue
		}
		s := &mixedSender{work: make(chan mixedMessage), sent: make(chan error, 1)}
		t.mixed[r] = s
		t.wg.Go(func() {
			for {
				select {
				case m := <-s.work:
					s.sent <- t.Send(r, m.tag, m.p)
				case <-t.Done():
					return
				}
			}
		})
	}
}

func (s *mixedSender) sendRecv(t *Transport, tag rdma.Tag, out []byte, from int, in []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case s.work <- mixedMessage{tag, out}:
	case <-t.Done():
		return t.Err()
	}
	err := t.Recv(from, tag, in)
	if sent := <-s.sent; err == nil {
		err = sent
	}
	return err
}
