package heartbeat

import (
	"fmt"
	"net/netip"
	"time"
)

// Peer is another rank of the group.
type Peer struct {
	Rank int
	Addr netip.AddrPort // where its beats go
	Out  Key            // signs what this rank sends to it
	In   Key            // signs what it sends
}

// SilenceError is why a rank counts as lost.
type SilenceError struct {
	Silence time.Duration // since its last beat, without the time in which this process did not run
	Bound   time.Duration // what was allowed
	// Others is how many more ranks are silent too. If all are, the fault may
	// be this machine's.
	Others int
	// Paused is how long this process did not run just before, 0 if it did.
	Paused time.Duration
}

func (e *SilenceError) Error() string {
	s := fmt.Sprintf("no heartbeat for %v", e.Silence.Round(time.Millisecond))
	if e.Others > 0 {
		s += fmt.Sprintf(", nor from %d more", e.Others)
	}
	if e.Paused > 0 {
		s += fmt.Sprintf(", after this machine or process had paused for %v", e.Paused.Round(time.Second))
	}
	return s
}

// Stats is what is known of the way to one rank. Durations of 0 are not known
// yet.
type Stats struct {
	Rank  int
	Heard bool // at least one beat has come; else liveness is not watched
	Lost  bool // it was reported
	Left  bool // it said goodbye

	Silence time.Duration // since its last beat
	Bound   time.Duration // how long that may be now
	RTT     time.Duration // smoothed, through both processes
	MinRTT  time.Duration // the least in this group
	Jitter  time.Duration // the most that a beat came late, of the last 16 to 32 seconds
	Loss    float64       // share of its beats that did not come in that time

	Sent, Received uint64
	Refused        uint64 // claimed to be from it, and were forged, replayed or late
}

// remote is a peer and all that is known of it.
type remote struct {
	Peer
	out, in *mac

	counter uint64 // of the last datagram to it

	heard    time.Time // when its last beat came, later by the time that does not count; zero before the first
	every    time.Duration
	newest   uint64 // its counter
	clock    uint64 // its clock in that
	came     time.Time
	arrivals arrivals
	rtt, low time.Duration
	received uint64
	refused  uint64
	lost     bool
	left     bool
	unheard  bool // was told of
}

// judged says whether its silence would mean anything.
func (r *remote) judged() bool { return !r.heard.IsZero() && !r.lost && !r.left }

func (r *remote) bound() time.Duration { return r.arrivals.bound(r.every, r.rtt) }

// deadline is when it is overdue, if it is judged.
func (r *remote) deadline() time.Time { return r.heard.Add(r.bound()) }

// accept takes an authentic datagram. clock is this rank's.
func (r *remote) accept(d *datagram, now time.Time, clock uint64) {
	if d.counter <= r.newest {
		r.refused++ // replayed, doubled, or overtaken: it says nothing new
		return
	}
	r.received++
	if d.kind == kindGoodbye {
		r.newest = d.counter
		r.left = true
		return
	}
	if !r.heard.IsZero() {
		r.arrivals.note(now.Sub(r.heard), d.counter-r.newest, d.interval)
	}
	r.heard, r.came = now, now
	r.newest, r.clock, r.every = d.counter, d.sent, d.interval
	// What a peer says of times is believed only where it makes sense.
	if d.echo > 0 && d.echo <= clock && d.held <= clock-d.echo {
		rtt := time.Duration(clock - d.echo - d.held)
		if r.rtt == 0 {
			r.rtt, r.low = rtt, rtt
		}
		r.rtt += (rtt - r.rtt) / 8 // as RFC 6298 smooths
		r.low = min(r.low, rtt)
	}
}

// next is the datagram to send now.
func (r *remote) next(k kind, epoch uint64, self int, now time.Time, clock uint64) datagram {
	r.counter++
	d := datagram{kind: k, interval: interval, epoch: epoch, from: uint32(self), to: uint32(r.Rank), counter: r.counter, sent: clock}
	if r.clock > 0 {
		d.echo, d.held = r.clock, uint64(now.Sub(r.came))
	}
	return d
}

func (r *remote) stats(now time.Time) Stats {
	s := Stats{
		Rank: r.Rank, Heard: !r.heard.IsZero(), Lost: r.lost, Left: r.left,
		RTT: r.rtt, MinRTT: r.low, Jitter: r.arrivals.excess(), Loss: r.arrivals.loss(),
		Sent: r.counter, Received: r.received, Refused: r.refused,
	}
	if s.Heard {
		s.Silence, s.Bound = now.Sub(r.heard), r.bound()
	}
	return s
}
