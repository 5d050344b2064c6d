package heartbeat

import (
	"math"
	"time"
)

const (
	// interval is the time between two beats to one peer.
	interval = 40 * time.Millisecond
	// minBound and maxBound limit how long a peer may be silent. The least is
	// not for the network but for processors: a process that was given none
	// for so long is rare, and one with shorter gaps common.
	minBound = 400 * time.Millisecond
	maxBound = 5 * time.Second
	// minMissed is the least number of beats that must be missing in a row.
	minMissed = 7
	// falseAlarm is the chance, for one pair in ten minutes, that as many
	// beats as the bound allows get lost one after the other.
	falseAlarm = 1e-9
	// period is how many beats make one half of what is remembered.
	period = 400
)

// A record is what arrived, and how, in one period.
type record struct {
	expected, received uint64
	gap                time.Duration // the longest between two arrivals
	excess             time.Duration // the most that a gap was longer than the beats in it
}

// An arrivals is the memory of one direction: this period and the one before,
// so between 16 and 32 seconds.
type arrivals struct{ now, before record }

// note adds a beat that came gap after the last one and is the nth after it.
func (a *arrivals) note(gap time.Duration, n uint64, every time.Duration) {
	if a.now.expected >= period {
		a.before, a.now = a.now, record{}
	}
	n = min(n, period) // a counter that leaps says no more than that
	a.now.expected += n
	a.now.received++
	a.now.gap = max(a.now.gap, gap)
	a.now.excess = max(a.now.excess, gap-time.Duration(n)*every)
}

// loss is the share of beats that did not come, or came too late to count.
func (a *arrivals) loss() float64 {
	n := a.now.expected + a.before.expected
	if n == 0 {
		return 0
	}
	return float64(n-a.now.received-a.before.received) / float64(n)
}

// excess is the measured jitter: of the network, of the sender and of this
// process together.
func (a *arrivals) excess() time.Duration { return max(a.now.excess, a.before.excess) }

// bound is how long a peer that beats so often may be silent. DESIGN.md derives
// it.
func (a *arrivals) bound(every, rtt time.Duration) time.Duration {
	n := float64(a.now.expected + a.before.expected)
	p := (a.loss()*n + 1) / (n + 50) // as if there had been fifty more, one of them lost
	if n > 100 {
		p = max(p, a.loss())
	}
	p = min(p+2*math.Sqrt(p*(1-p)/(n+50)), 0.9)
	beats := float64(10*time.Minute) / float64(every)
	missed := max(math.Ceil(math.Log(falseAlarm/beats)/math.Log(p)), minMissed)
	b := time.Duration(missed+1)*every + 2*a.excess() + rtt
	b = max(b, 2*max(a.now.gap, a.before.gap), minBound)
	return min(b, maxBound)
}
