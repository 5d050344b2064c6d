package heartbeat

import (
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A relay stands between two real sockets, one direction of a pair, and makes of
// loopback a worse network.
type relay struct {
	conn *net.UDPConn
	to   netip.AddrPort
	done chan struct{}

	mu     sync.Mutex // guards the fields below
	rng    *rand.Rand
	delay  time.Duration
	jitter time.Duration
	loss   float64
	attack bool // doubles, replays and flips bits too
	cut    bool // of what comes, nothing goes on; attacks do
	old    [][]byte
	timers map[*time.Timer]bool
}

func startRelay(t *testing.T, r *relay, to uint16) uint16 {
	t.Helper()
	conn, port, err := openSocket()
	require.NoError(t, err)
	r.conn, r.to, r.done = conn, netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), to), make(chan struct{})
	r.rng, r.timers = rand.New(rand.NewPCG(1, uint64(to))), map[*time.Timer]bool{}
	go r.run()
	t.Cleanup(func() {
		conn.Close()
		<-r.done
		r.mu.Lock()
		defer r.mu.Unlock()
		for timer := range r.timers {
			timer.Stop()
		}
	})
	return port
}

func (r *relay) run() {
	defer close(r.done)
	var buf [2 * datagramSize]byte
	for {
		n, _, err := r.conn.ReadFromUDPAddrPort(buf[:])
		if err != nil {
			return
		}
		r.pass(buf[:n])
	}
}

func (r *relay) pass(b []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	b = append([]byte(nil), b...)
	if !r.cut && r.rng.Float64() >= r.loss {
		r.later(b)
	}
	if r.attack {
		if !r.cut {
			r.old = append(r.old, b)
		}
		r.later(r.old[r.rng.IntN(len(r.old))])
		flipped := append([]byte(nil), b...)
		flipped[r.rng.IntN(len(b))] ^= 1 << r.rng.IntN(8)
		r.later(flipped)
		r.later(b[:r.rng.IntN(len(b))])
	}
}

// later sends b when its time has come. The caller holds mu.
func (r *relay) later(b []byte) {
	delay := r.delay
	if r.jitter > 0 {
		delay += time.Duration(r.rng.Int64N(int64(r.jitter)))
	}
	var timer *time.Timer
	timer = time.AfterFunc(delay, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.timers, timer)
		_, _ = r.conn.WriteToUDPAddrPort(b, r.to) // to nobody any more at the end
	})
	r.timers[timer] = true
}

func (r *relay) set(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

// TestRelayed: over real sockets, too, a bad network is no loss, and forged or
// repeated datagrams keep nobody alive.
func TestRelayed(t *testing.T) {
	for name, relays := range map[string][2]*relay{
		"50ms-5%":  {{delay: 50 * time.Millisecond, jitter: 10 * time.Millisecond, loss: 0.05}, {delay: 50 * time.Millisecond, jitter: 10 * time.Millisecond, loss: 0.05}},
		"attacked": {{attack: true}, {attack: true}},
	} {
		t.Run(name, func(t *testing.T) {
			var conns [2]*net.UDPConn
			var ports [2]uint16
			for rank := range conns {
				var err error
				conns[rank], ports[rank], err = openSocket()
				require.NoError(t, err)
			}
			var monitors [2]*Monitor
			lost := make(chan loss, 2)
			for rank := range monitors {
				way := startRelay(t, relays[rank], ports[1-rank]) // of what this rank sends
				heard := make([]uint16, 2)
				heard[1-rank] = way
				var err error
				monitors[rank], err = Start(conns[rank], Config{Epoch: 9, Rank: rank, Peers: realPeers(rank, heard),
					Lost: func(r int, reason error) { lost <- loss{r, reason, time.Now()} }})
				require.NoError(t, err)
				t.Cleanup(func() { monitors[rank].Close() })
			}
			timer := time.NewTimer(loadTime())
			defer timer.Stop()
			select {
			case l := <-lost:
				t.Fatalf("rank %d was reported: %v; %+v %+v", l.rank, l.reason, monitors[0].Stats(), monitors[1].Stats())
			case <-timer.C:
			}
			s := monitors[0].Stats()[0]
			t.Logf("%+v", s)
			assert.True(t, s.Heard)
			if relays[1].attack {
				assert.Positive(t, s.Refused)
				assert.Positive(t, monitors[0].Refused())
			} else {
				assert.GreaterOrEqual(t, s.MinRTT, 100*time.Millisecond)
			}
			cut := time.Now()
			relays[1].set(func() { relays[1].cut = true })
			select {
			case l := <-lost:
				require.Equal(t, 1, l.rank)
				t.Logf("noticed after %v: %v", l.at.Sub(cut), l.reason)
			case <-time.After(patience):
				t.Fatalf("no loss noticed within %v: %+v", patience, monitors[0].Stats())
			}
		})
	}
}
