package verbs

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// spins is how many polls follow each other without a pause: about twenty
	// microseconds, which covers the wire.
	spins = 100
	// yieldFor is how long a wait then lets others run between polls: about
	// what ranks that compute alike differ by.
	yieldFor = 150 * time.Microsecond
	// After that it sleeps for an eighth of the time waited so far, so that
	// what sleeping adds stays in proportion, between these bounds.
	shortestNap = 20 * time.Microsecond
	longestNap  = time.Millisecond
	// aliveEvery is how often a spinning wait looks whether the group lives.
	aliveEvery = 16
)

// A waiter paces a goroutine that polls: it spins, then yields, then sleeps.
//
// A goroutine that spins stays on its thread, since it does not yield; callers
// that own their thread keep it all the time. Sleeping is done in the kernel
// and not by Go's timers, which take a millisecond at the least on Linux.
type waiter struct {
	polls int
	since time.Time
	now   time.Duration // since then
}

// reset starts over after progress.
func (w *waiter) reset() { w.polls = 0 }

// look reports whether it is time to look at what ends a wait.
func (w *waiter) look() bool { return w.polls%aliveEvery == 0 || w.polls > spins }

// pause is called between polls that found nothing.
func (w *waiter) pause() {
	w.polls++
	if w.polls < spins {
		return
	}
	if w.polls == spins {
		w.since = time.Now()
	}
	w.now = time.Since(w.since)
	if w.now < yieldFor {
		runtime.Gosched()
		return
	}
	nap(min(longestNap, max(shortestNap, w.now/8)))
}

// nap blocks the thread; Go gives its processor to others meanwhile.
func nap(d time.Duration) {
	t := unix.NsecToTimeval(d.Nanoseconds())
	_, _ = unix.Select(0, nil, nil, nil, &t) // a signal cuts it short, which is as good
}
