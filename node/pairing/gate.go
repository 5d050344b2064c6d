package pairing

import (
	"sync"
	"time"
)

const (
	// firstWait is how long no pairing begins after the first that failed; each
	// further one doubles it.
	firstWait = 2 * time.Second
	// lockAfter failures in a row lock the gate for lockTime, and so does every
	// further one.
	lockAfter = 5
	lockTime  = 10 * time.Minute
	// forgetAfter without a failure, all are forgotten.
	forgetAfter = time.Hour
)

// Gate lets one pairing at a time begin, and makes guessing slow. Failures of
// those that others began and of those that were begun here are counted apart,
// so that a stranger who keeps failing cannot keep the person here from
// beginning one. The zero Gate is open. It is safe for concurrent use.
type Gate struct {
	mu       sync.Mutex // guards the fields below
	taken    bool
	incoming failures
	outgoing failures
}

type failures struct {
	n    int
	last time.Time
}

// wait is until when nothing begins.
func (f failures) wait() time.Time {
	switch {
	case f.n == 0:
		return time.Time{}
	case f.n < lockAfter:
		return f.last.Add(firstWait << (f.n - 1))
	}
	return f.last.Add(lockTime)
}

// Enter takes the gate for one attempt. The error is ErrBusy or a *LockedError;
// without one, leave must be called once, when the attempt is over.
func (g *Gate) Enter(incoming bool) (leave func(Outcome), err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	count := &g.outgoing
	if incoming {
		count = &g.incoming
	}
	now := time.Now()
	if count.n > 0 && now.Sub(count.last) > forgetAfter {
		*count = failures{}
	}
	if until := count.wait(); now.Before(until) {
		return nil, &LockedError{until}
	}
	if g.taken {
		return nil, ErrBusy
	}
	g.taken = true
	return func(o Outcome) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.taken = false
		switch o {
		case Paired:
			*count = failures{}
		case Failed:
			count.n++
			count.last = time.Now()
		}
	}, nil
}

// Outcome of an attempt, for the Gate.
type Outcome int

// The outcomes.
const (
	Nothing Outcome = iota // nobody could learn the digits
	Paired
	Failed // the other side may have learnt the digits, and there is no trust
)
