package heartbeat

import (
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A network joins the fake sockets of one test, inside a synctest bubble.
type network struct {
	mu    sync.Mutex // guards the fields below
	conns map[netip.AddrPort]*fakeConn
	rng   *rand.Rand
	way   way
	cut   map[int]bool // ranks that nothing leaves
	sent  [][]byte     // a copy of all datagrams, if kept
	keep  bool
}

// A way is what happens to datagrams: all to all alike.
type way struct {
	delay, jitter time.Duration // delay, and up to so much more
	loss          float64
	burst         int     // so many more are lost after one
	double        float64 // arrive twice
}

type fakeConn struct {
	net   *network
	rank  int
	inbox chan []byte
	gone  chan struct{}
	lost  int // of the burst under way; net.mu guards it

	mu     sync.Mutex // guards the fields below
	begun  time.Time  // hangs since
	hangs  time.Duration
	runs   time.Duration
	closed bool
}

func newNetwork(seed uint64, w way) *network {
	return &network{conns: map[netip.AddrPort]*fakeConn{}, rng: rand.New(rand.NewPCG(seed, 1)), way: w, cut: map[int]bool{}}
}

func addrOf(rank int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(1000+rank))
}

func (n *network) conn(rank int) *fakeConn {
	c := &fakeConn{net: n, rank: rank, inbox: make(chan []byte, 1000), gone: make(chan struct{})}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.conns[addrOf(rank)] = c
	return c
}

func (n *network) set(change func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change()
}

func (c *fakeConn) WriteTo(b []byte, to netip.AddrPort) (int, error) {
	c.run()
	n := c.net
	n.mu.Lock()
	defer n.mu.Unlock()
	b = append([]byte(nil), b...)
	if n.keep {
		n.sent = append(n.sent, b)
	}
	dst := n.conns[to]
	if dst == nil || n.cut[c.rank] {
		return len(b), nil
	}
	if c.lost > 0 {
		c.lost--
		return len(b), nil
	}
	if n.rng.Float64() < n.way.loss {
		c.lost = n.way.burst
		return len(b), nil
	}
	times := 1
	if n.rng.Float64() < n.way.double {
		times = 2
	}
	for range times {
		delay := n.way.delay
		if n.way.jitter > 0 {
			delay += time.Duration(n.rng.Int64N(int64(n.way.jitter)))
		}
		time.AfterFunc(delay, func() {
			select {
			case dst.inbox <- b:
			default: // the socket's buffer is full
			}
		})
	}
	return len(b), nil
}

// hang makes this rank's process run only now and then: not for the first of
// the two times, then for the second, and again.
func (c *fakeConn) hang(hangs, runs time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.begun, c.hangs, c.runs = time.Now(), hangs, runs
}

// run returns when the process runs.
func (c *fakeConn) run() {
	c.mu.Lock()
	wait := time.Duration(0)
	if c.hangs > 0 {
		wait = max(0, c.hangs-time.Since(c.begun)%(c.hangs+c.runs))
	}
	c.mu.Unlock()
	time.Sleep(wait)
}

func (c *fakeConn) now() time.Time {
	c.run()
	return time.Now()
}

func (c *fakeConn) Read(b []byte) (int, error) {
	select {
	case p := <-c.inbox:
		c.run()
		return copy(b, p), nil
	case <-c.gone:
		return 0, net.ErrClosed
	}
}

func (c *fakeConn) Try(b []byte) (int, bool) {
	c.run()
	select {
	case p := <-c.inbox:
		return copy(b, p), true
	default:
		return 0, false
	}
}

func (c *fakeConn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.closed = true
		close(c.gone)
	}
	c.net.mu.Lock()
	defer c.net.mu.Unlock()
	delete(c.net.conns, addrOf(c.rank))
	return nil
}

// keyOf is a key for tests, other for every direction.
func keyOf(from, to int) (k Key) {
	k[0], k[1], k[2] = byte(from), byte(to), 7
	return k
}

func peersOf(rank, world int) (peers []Peer) {
	for r := range world {
		if r != rank {
			peers = append(peers, Peer{Rank: r, Addr: addrOf(r), Out: keyOf(rank, r), In: keyOf(r, rank)})
		}
	}
	return peers
}

// A watcher is a rank and what it was told.
type watcher struct {
	*Monitor
	conn *fakeConn

	mu      sync.Mutex // guards the fields below
	lost    map[int]*SilenceError
	when    map[int]time.Time
	unheard []int
}

func (n *network) join(t *testing.T, rank, world int) *watcher {
	t.Helper()
	w := &watcher{lost: map[int]*SilenceError{}, when: map[int]time.Time{}, conn: n.conn(rank)}
	var err error
	w.Monitor, err = newMonitor(w.conn, Config{Epoch: 5, Rank: rank, Peers: peersOf(rank, world),
		Lost: func(rank int, reason error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.lost[rank] = reason.(*SilenceError)
			w.when[rank] = time.Now()
		},
		Unheard: func(rank int) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.unheard = append(w.unheard, rank)
		}}, w.conn.now)
	require.NoError(t, err)
	w.run()
	t.Cleanup(func() { w.Close() }) // in the bubble
	return w
}

func (w *watcher) losses() map[int]*SilenceError {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := map[int]*SilenceError{}
	for r, e := range w.lost {
		all[r] = e
	}
	return all
}

func (w *watcher) of(rank int) Stats {
	for _, s := range w.Stats() {
		if s.Rank == rank {
			return s
		}
	}
	return Stats{}
}
