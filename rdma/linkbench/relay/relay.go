// Package relay passes TCP connections on and lets everything arrive later, so that
// ranks on one machine can be measured as if they were apart.
//
// A Relay listens on loopback and connects each caller to one address. What comes
// from either side goes to the other when Delay has passed since it was read, in
// order; several pieces are under way at a time, so bandwidth is not limited by the
// delay. Beside the delay, passing on takes the time of two system calls and a wake-up.
//
// The last moment before something is due is polled for, since sleeping is not exact
// enough. Close ends all connections and waits for the relay's goroutines.
package relay

import (
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

const (
	pieceBytes = 64 << 10
	underWay   = 1024 // pieces in one direction at a time
)

// Relay is one listening relay. Its methods may be called from several goroutines.
type Relay struct {
	listener net.Listener
	to       string
	delay    atomic.Int64   // nanoseconds
	wg       sync.WaitGroup // every goroutine

	closing chan struct{} // Close was called

	mu     sync.Mutex // guards conns and closed
	conns  []net.Conn
	closed bool
}

// New starts a relay to an address, with delay each way.
func New(to string, delay time.Duration) (*Relay, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &Relay{listener: l, to: to, closing: make(chan struct{})}
	r.SetDelay(delay)
	r.wg.Go(r.accept)
	return r, nil
}

// SetDelay changes the delay for what comes from now on. What is under way keeps the
// one it had, and what follows it still comes after it.
func (r *Relay) SetDelay(delay time.Duration) { r.delay.Store(int64(delay)) }

// Address is where it listens.
func (r *Relay) Address() string { return r.listener.Addr().String() }

// Close ends it, and may be called again.
func (r *Relay) Close() {
	r.mu.Lock()
	if !r.closed {
		close(r.closing)
	}
	r.closed = true
	_ = r.listener.Close()
	for _, c := range r.conns {
		_ = c.Close()
	}
	r.mu.Unlock()
	r.wg.Wait()
}

// keep makes Close close c; false when that has happened already.
func (r *Relay) keep(c net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		_ = c.Close()
		return false
	}
	r.conns = append(r.conns, c)
	return true
}

func (r *Relay) accept() {
	for {
		caller, err := r.listener.Accept()
		if err != nil {
			return // it was closed
		}
		if !r.keep(caller) {
			return
		}
		target, err := net.DialTimeout("tcp", r.to, 10*time.Second)
		if err != nil {
			_ = caller.Close()
			continue
		}
		if !r.keep(target) {
			return
		}
		r.pass(caller.(*net.TCPConn), target.(*net.TCPConn))
		r.pass(target.(*net.TCPConn), caller.(*net.TCPConn))
	}
}

// piece is what was read at once, and when it is due.
type piece struct {
	bytes []byte
	due   time.Time
}

// pass starts one direction. Its two goroutines end when either side has.
func (r *Relay) pass(from, to *net.TCPConn) {
	pieces, done := make(chan piece, underWay), make(chan struct{})
	spare := sync.Pool{New: func() any { return new([pieceBytes]byte) }}
	r.wg.Go(func() {
		defer close(pieces)
		for {
			buf := spare.Get().(*[pieceBytes]byte)
			n, err := from.Read(buf[:])
			if n > 0 {
				select {
				case pieces <- piece{buf[:n], time.Now().Add(time.Duration(r.delay.Load()))}:
				case <-done:
					return
				}
			}
			if err != nil {
				return
			}
		}
	})
	r.wg.Go(func() {
		defer close(done)
		defer to.CloseWrite() // what the other side hears at last
		for p := range pieces {
			r.wait(p.due)
			if _, err := to.Write(p.bytes); err != nil {
				_ = from.Close()
				return
			}
			spare.Put((*[pieceBytes]byte)(p.bytes[:pieceBytes]))
		}
	})
}

const (
	// poll is how long before something is due the sleep has to end.
	poll = 150 * time.Microsecond
	// nap is the longest sleep, after which Close is looked at.
	nap = 20 * time.Millisecond
)

// wait returns when something is due, or when the relay is closed.
func (r *Relay) wait(due time.Time) {
	for left := time.Until(due); left > 0; left = time.Until(due) {
		select {
		case <-r.closing:
			return
		default:
		}
		if left > poll {
			sleep(min(left-poll, nap))
		} else {
			runtime.Gosched()
		}
	}
}
