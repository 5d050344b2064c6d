package tcp

import (
	"io"
	"net"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// patience says what an operation does when the kernel has nothing to give or
// no room to take.
type patience uint8

const (
	sleep patience = iota // polls for a moment, then waits for the deadline
	look                  // returns errAgain
)

// errAgain is what crypto/tls takes for a passing condition: a later Read goes
// on where this one stopped.
var errAgain net.Error = againError{}

type againError struct{}

func (againError) Error() string   { return "nothing there yet" }
func (againError) Timeout() bool   { return true }
func (againError) Temporary() bool { return true }

// A Conn is a TCP connection as ranks want it, to be put below TLS: it polls
// for a moment before it sleeps, and passes several TLS records to the kernel
// at once. Until New takes it over it does what *net.TCPConn does.
type Conn struct {
	*net.TCPConn
	sys   syscall.RawConn
	taken bool // by New, before it starts anything

	// Guarded by the lock of the direction.
	in, out direction
	held    held
}

// A direction is the operation under way, for the function that the runtime
// calls with the descriptor. It is bound once, so that nothing is allocated.
type direction struct {
	try  func(fd uintptr) bool
	poll func(fd uintptr) bool
	ask  [1]unix.PollFd
	spin spin
	mode patience
	p    [2][]byte // the second may be empty
	n    int
	err  error
}

// held is what TLS has written and the kernel has not got yet. TLS may write
// while somebody reads, so it has a lock of its own.
type held struct {
	mu   sync.Mutex // guards the fields
	on   bool
	p    []byte
	sent int // of p
}

// Wire returns a *Conn if c is a *net.TCPConn, else c itself. Put it below TLS:
//
//	tls.Client(tcp.Wire(c), config)
func Wire(c net.Conn) net.Conn {
	raw, ok := c.(*net.TCPConn)
	if !ok {
		return c
	}
	sys, err := raw.SyscallConn()
	if err != nil {
		return c // it has no descriptor: whatever one does with it fails
	}
	w := &Conn{TCPConn: raw, sys: sys}
	w.in.try, w.in.poll, w.out.try = w.tryRead, w.tryPoll, w.tryWrite
	return w
}

// NetConn returns the connection below.
func (c *Conn) NetConn() net.Conn { return c.TCPConn }

// Read implements net.Conn.
func (c *Conn) Read(p []byte) (int, error) {
	if !c.taken || len(p) == 0 {
		return c.TCPConn.Read(p)
	}
	return c.readSome(p, nil)
}

// readSome reads once, into first and then second.
func (c *Conn) readSome(first, second []byte) (int, error) {
	c.in.p = [2][]byte{first, second}
	err := c.sys.Read(c.in.try)
	return c.in.result(err)
}

// readable says whether a read would find something, be it the end.
func (c *Conn) readable() bool {
	err := c.sys.Read(c.in.poll)
	found := c.in.n != 0
	c.in.n = 0
	return err != nil || found
}

func (c *Conn) tryPoll(fd uintptr) bool {
	c.in.ask[0] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
	c.in.n, _ = unix.Poll(c.in.ask[:], 0)
	return true
}

func (c *Conn) tryRead(fd uintptr) bool {
	d := &c.in
	for {
		n, err := readNow(fd, d.p[0], d.p[1])
		if err == nil && n == 0 {
			err = io.EOF
		}
		if again, finished := d.next(n, err); finished {
			return true
		} else if !again {
			return false
		}
	}
}

// next decides after a system call: finished, or again, or else sleep.
func (d *direction) next(n int, err error) (again, finished bool) {
	switch err {
	case syscall.EINTR:
		return true, false
	case syscall.EAGAIN:
		if d.mode == look {
			d.n, d.err = 0, errAgain
			return false, true
		}
		return d.spin.again(), false
	}
	d.spin.found()
	d.n, d.err = max(n, 0), err
	return false, true
}

// result takes the operation's outcome and lets go of the caller's memory.
func (d *direction) result(err error) (int, error) {
	n := d.n
	if err == nil {
		err = d.err
	}
	d.p, d.n, d.err = [2][]byte{}, 0, nil
	return n, err
}

// writeSome writes once, first and then second, and says how much went.
func (c *Conn) writeSome(first, second []byte) (int, error) {
	c.out.p = [2][]byte{first, second}
	err := c.sys.Write(c.out.try)
	return c.out.result(err)
}

func (c *Conn) tryWrite(fd uintptr) bool {
	d := &c.out
	for {
		n, err := writeNow(fd, d.p[0], d.p[1])
		if again, finished := d.next(n, err); finished {
			return true
		} else if !again {
			return false
		}
	}
}

// hold makes Write keep everything until flush.
func (c *Conn) hold() {
	c.held.mu.Lock()
	c.held.on = true
	c.held.mu.Unlock()
}

// Write implements net.Conn. It does not keep p.
func (c *Conn) Write(p []byte) (int, error) {
	h := &c.held
	h.mu.Lock()
	on := h.on
	if on {
		h.p = append(h.p, p...)
	}
	h.mu.Unlock()
	if on {
		return len(p), nil
	}
	return c.TCPConn.Write(p)
}

// holding says whether anything is held.
func (c *Conn) holding() bool {
	c.held.mu.Lock()
	defer c.held.mu.Unlock()
	return len(c.held.p) > 0
}

// flush writes what is held, or with look, once what the kernel takes. It says
// whether anything went.
func (c *Conn) flush() (moved bool, err error) {
	h := &c.held
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.sent < len(h.p) {
		n, err := c.writeSome(h.p[h.sent:], nil)
		h.sent += n
		moved = moved || n > 0
		if err != nil {
			return moved, err
		}
	}
	h.p, h.sent = h.p[:0], 0
	return moved, nil
}
