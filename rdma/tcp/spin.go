package tcp

import (
	"sync/atomic"
	"time"
)

// spinLimit is how long a wait polls before it sleeps: about twice what a short
// exchange takes on loopback. Sleeping and being woken costs as much again as
// the exchange.
const spinLimit = 50 * time.Microsecond

// maxMisses bounds the waits that are slept through after a poll in vain to
// 2^maxMisses-1. So polling costs at most a 64th of spinLimit for each wait
// where it never helps: where the peer takes longer, or needs this very core.
const maxMisses = 6

// Ranks in this process, as in tests, that outnumber its processors never poll:
// they would keep each other from running.
var ranks, processors atomic.Int32

// A spin decides whether a wait polls. It belongs to one direction of one
// connection.
type spin struct {
	polling bool
	until   time.Duration // since start, when polling
	misses  uint8         // polls in vain, in a row
	skip    uint8         // waits to sleep through
}

var start = time.Now()

// again is asked each time there was nothing. It says whether to look again at
// once; if not, the caller sleeps.
func (s *spin) again() bool {
	switch {
	case s.polling:
		if time.Since(start) < s.until {
			return true
		}
		s.polling = false
		s.misses = min(s.misses+1, maxMisses)
		s.skip = 1<<s.misses - 1
		return false
	case s.skip > 0:
		s.skip--
		return false
	case ranks.Load() > processors.Load():
		return false
	}
	s.polling, s.until = true, time.Since(start)+spinLimit
	return true
}

// found is told that there was something.
func (s *spin) found() {
	if s.polling {
		s.polling, s.misses = false, 0
	}
}
