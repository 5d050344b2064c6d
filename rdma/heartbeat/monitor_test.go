package heartbeat

import (
	"fmt"
	"math"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	lan  = way{delay: 100 * time.Microsecond, jitter: 400 * time.Microsecond}
	poor = way{delay: 50 * time.Millisecond, jitter: 15 * time.Millisecond, loss: 0.05, double: 0.01}
)

// TestLossOnALAN: in fake time the bound can be checked to the millisecond.
func TestLossOnALAN(t *testing.T) {
	for after := time.Duration(0); after < interval; after += interval / 7 {
		for _, since := range []time.Duration{3 * time.Second, time.Minute} {
			synctest.Test(t, func(t *testing.T) {
				n := newNetwork(1, lan)
				a, b, c := n.join(t, 0, 3), n.join(t, 1, 3), n.join(t, 2, 3)
				time.Sleep(since + after)
				require.Empty(t, a.losses())
				s := a.of(1)
				assert.True(t, s.Heard)
				assert.Zero(t, s.Loss)
				assert.Zero(t, s.Refused)
				assert.InDelta(t, 600e3, s.RTT, 400e3)
				assert.GreaterOrEqual(t, s.MinRTT, 200*time.Microsecond)
				assert.Less(t, s.Jitter, time.Millisecond)

				n.set(func() { n.cut[1] = true })
				cut := time.Now()
				time.Sleep(500 * time.Millisecond)
				for _, w := range []*watcher{a, c} {
					lost := w.losses()
					require.Len(t, lost, 1)
					require.Contains(t, lost, 1)
					assert.Less(t, w.when[1].Sub(cut), 500*time.Millisecond)
					assert.GreaterOrEqual(t, lost[1].Silence, lost[1].Bound)
					assert.Zero(t, lost[1].Others)
				}
				assert.Empty(t, b.losses(), "what it does not send, it still hears")
			})
		}
	}
}

// TestNoFalseAlarm runs pairs over bad networks for as long as it takes, in fake
// time, and then cuts them: nobody is reported before, and after that within
// the bound that was stated.
func TestNoFalseAlarm(t *testing.T) {
	minutes := 10 * time.Minute
	if raceEnabled || testing.Short() {
		minutes = 2 * time.Minute
	}
	for name, w := range map[string]way{
		"lan":                  lan,
		"50ms-5%":              poor,
		"10%-loss":             {delay: time.Millisecond, loss: 0.10},
		"bursts-of-4":          {delay: 5 * time.Millisecond, jitter: 5 * time.Millisecond, loss: 0.001, burst: 3},
		"jitter-beyond-a-beat": {delay: 5 * time.Millisecond, jitter: 120 * time.Millisecond, double: 0.1},
		"30%-loss":             {delay: 20 * time.Millisecond, loss: 0.30},
	} {
		for seed := range uint64(3) {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := newNetwork(seed, w)
					a, b := n.join(t, 0, 2), n.join(t, 1, 2)
					begun := time.Now()
					time.Sleep(minutes)
					require.Empty(t, a.losses(), "after %v; %+v", a.when[1].Sub(begun), a.of(1))
					require.Empty(t, b.losses())
					s := a.of(1)
					if w.jitter < interval {
						assert.InDelta(t, w.loss*float64(1+w.burst), s.Loss, 0.05+w.loss/2)
					}
					n.set(func() { n.cut[1] = true })
					time.Sleep(s.Bound*5/4 + s.RTT/2 + w.jitter + interval) // the last beats may have moved the bound
					require.Contains(t, a.losses(), 1)
					if w == poor {
						assert.Less(t, s.Bound, 1100*time.Millisecond)
					}
					t.Logf("bound %v, RTT %v, loss %.3f", s.Bound, s.RTT, s.Loss)
				})
			})
		}
	}
}

// TestBoundKeepsItsPromise computes the chance of a false alarm in ten minutes
// from the bound, for networks that lose independently.
func TestBoundKeepsItsPromise(t *testing.T) {
	for _, p := range []float64{0, 0.001, 0.01, 0.05, 0.1, 0.2, 0.4, 0.6} {
		var a arrivals
		for lost := 0.0; a.before.expected == 0 || a.now.expected < period; {
			n := uint64(1)
			for lost += p / (1 - p); lost >= 1; lost-- {
				n++
			}
			a.note(time.Duration(n)*interval, n, interval)
		}
		missed := math.Floor(float64(a.bound(interval, 0))/float64(interval)) - 1
		chance := math.Pow(p, missed) * float64(10*time.Minute/interval)
		t.Logf("loss %.3f (measured %.3f): bound %v, %v beats in a row, chance in ten minutes %.1e", p, a.loss(), a.bound(interval, 0), missed, chance)
		assert.LessOrEqual(t, chance, falseAlarm)
		assert.LessOrEqual(t, a.bound(interval, 0), maxBound)
	}
}

// TestBoundHasLimits: whatever a peer claims, nobody waits for ever or gives up
// at once.
func TestBoundHasLimits(t *testing.T) {
	var a arrivals
	for _, n := range []uint64{1, 1 << 40, math.MaxUint64, 1} {
		for _, gap := range []time.Duration{-time.Hour, 0, time.Second, math.MaxInt64} {
			a.note(gap, n, interval)
			b := a.bound(interval, 0)
			assert.GreaterOrEqual(t, b, minBound)
			assert.LessOrEqual(t, b, maxBound)
		}
	}
}

// TestStarved: a process that runs only now and then accuses nobody who lives,
// and still notices who does not.
func TestStarved(t *testing.T) {
	for _, stall := range []time.Duration{30, 100, 300, 700, 950} {
		synctest.Test(t, func(t *testing.T) {
			n := newNetwork(1, lan)
			a := n.join(t, 0, 2)
			n.join(t, 1, 2)
			time.Sleep(time.Second)
			a.conn.hang(stall*time.Millisecond, 5*time.Millisecond)
			time.Sleep(time.Minute)
			require.Empty(t, a.losses(), "late by %d ms", stall)
			n.set(func() { n.cut[1] = true })
			time.Sleep(2 * time.Minute)
			require.Contains(t, a.losses(), 1, "late by %d ms", stall)
			a.conn.hang(0, 0)
		})
	}
}

// TestFrozenAndBack: a process that did not run for a minute accuses nobody,
// since the others were there all along.
func TestFrozenAndBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(1, lan)
		a, b := n.join(t, 0, 2), n.join(t, 1, 2)
		time.Sleep(time.Second)
		a.conn.hang(time.Minute, time.Hour)
		time.Sleep(3 * time.Minute)
		require.Empty(t, a.losses())
		require.Contains(t, b.losses(), 0, "the others did not wait")
		assert.False(t, a.of(1).Lost)
	})
}

// TestSleep: the machine slept, so that nothing came and the clock stood still;
// only the time of day tells. The others have gone meanwhile.
func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(1, lan)
		a := n.join(t, 0, 2)
		n.join(t, 1, 2)
		time.Sleep(time.Second)
		n.set(func() { n.cut[1] = true })
		a.Monitor.mu.Lock()
		a.wall = func() time.Time { return time.Now().Round(0).Add(8 * time.Hour) }
		a.Monitor.mu.Unlock()
		time.Sleep(recheck - 100*time.Millisecond)
		require.Empty(t, a.losses(), "it looks again first")
		time.Sleep(time.Second)
		lost := a.losses()
		require.Contains(t, lost, 1)
		assert.InDelta(t, 8*time.Hour, lost[1].Paused, float64(time.Second))
		assert.ErrorContains(t, lost[1], "had paused for 8h0m0s")
	})
}

// TestUnheard: a firewall that lets no datagram through is no loss.
func TestUnheard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(1, lan)
		n.cut[1] = true
		a, b, c := n.join(t, 0, 3), n.join(t, 1, 3), n.join(t, 2, 3)
		time.Sleep(time.Minute)
		for _, w := range []*watcher{a, c} {
			assert.Empty(t, w.losses())
			assert.Equal(t, []int{1}, w.unheard)
			assert.False(t, w.of(1).Heard)
			assert.Zero(t, w.of(1).Bound)
		}
		assert.Empty(t, b.unheard)
		assert.Zero(t, b.of(0).RTT, "nobody answers it")

		n.set(func() { n.cut[1] = false }) // later it is heard and watched
		time.Sleep(time.Second)
		assert.True(t, a.of(1).Heard)
		n.set(func() { n.cut[1] = true })
		time.Sleep(time.Second)
		assert.Contains(t, a.losses(), 1)
	})
}

func TestGoodbye(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(1, way{delay: time.Millisecond})
		a, b := n.join(t, 0, 2), n.join(t, 1, 2)
		time.Sleep(time.Second)
		require.NoError(t, b.Close())
		require.NoError(t, b.Close())
		time.Sleep(time.Minute)
		assert.Empty(t, a.losses())
		assert.True(t, a.of(1).Left)
	})
}

// TestOwnLinkDown: who hears nobody any more says so.
func TestOwnLinkDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNetwork(1, lan)
		a := n.join(t, 0, 3)
		n.join(t, 1, 3)
		n.join(t, 2, 3)
		time.Sleep(time.Second)
		n.set(func() { n.cut[1], n.cut[2] = true, true })
		time.Sleep(time.Second)
		lost := a.losses()
		require.Len(t, lost, 2)
		assert.Equal(t, 1, lost[1].Others)
		assert.ErrorContains(t, lost[1], "nor from 1 more")
	})
}

func TestStartRefusesNonsense(t *testing.T) {
	lost := func(int, error) {}
	good := Peer{Rank: 1, Addr: addrOf(1)}
	for name, config := range map[string]Config{
		"nobody to tell": {Peers: []Peer{good}},
		"itself":         {Peers: []Peer{{Rank: 0, Addr: addrOf(1)}}, Lost: lost},
		"negative":       {Peers: []Peer{{Rank: -1, Addr: addrOf(1)}}, Lost: lost},
		"twice":          {Peers: []Peer{good, good}, Lost: lost},
		"no address":     {Peers: []Peer{{Rank: 1}}, Lost: lost},
	} {
		n := newNetwork(1, lan)
		_, err := newMonitor(n.conn(0), config, time.Now)
		require.Error(t, err, name)
		conn, _, err := openSocket()
		require.NoError(t, err)
		_, err = Start(conn, config)
		require.Error(t, err, name)
		require.ErrorIs(t, conn.Close(), net.ErrClosed)
	}
}
