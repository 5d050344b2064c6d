package control

import (
	"net"
	"sync"
)

// conns are open connections that can be closed all at once.
type conns struct {
	mu     sync.Mutex // guards the fields below
	open   map[*member]bool
	closed bool
}

// member is a connection that leaves its set when it is closed.
type member struct {
	net.Conn
	set *conns
}

// NetConn lets rdma/tcp find the TCP connection below.
func (m *member) NetConn() net.Conn { return m.Conn }

// add wraps c. In a closed set, c is closed at once.
func (s *conns) add(c net.Conn) net.Conn {
	m := &member{c, s}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		c.Close()
	} else {
		if s.open == nil {
			s.open = map[*member]bool{}
		}
		s.open[m] = true
	}
	return m
}

func (s *conns) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// release takes a connection out of the set without closing it.
func (m *member) release() {
	m.set.mu.Lock()
	defer m.set.mu.Unlock()
	delete(m.set.open, m)
}

func (m *member) Close() error {
	m.release()
	return m.Conn.Close()
}

func (s *conns) close() {
	s.mu.Lock()
	open := s.open
	s.open, s.closed = nil, true
	s.mu.Unlock()
	for m := range open {
		m.Conn.Close()
	}
}
