package relay

import (
	"time"

	"golang.org/x/sys/unix"
)

// sleep is finer than time.Sleep, which rounds up to a millisecond when everything
// else sleeps too.
func sleep(d time.Duration) {
	tv := unix.NsecToTimeval(d.Nanoseconds())
	_, _ = unix.Select(0, nil, nil, nil, &tv) // woken early is looked at again
}
