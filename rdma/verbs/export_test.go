package verbs

import (
	"testing"
	"time"

	"daisy/rdma"
)

// Base is the transport below.
func Base(t rdma.Transport) rdma.Transport { return t.(*Transport).base }

// ConnectWithout is New on a machine without a library.
func ConnectWithout(missing error, base rdma.Transport, o Options) (rdma.Transport, error) {
	return connect(nil, missing, base, o)
}

// SetProbeTimeout changes it for one test.
func SetProbeTimeout(tb testing.TB, d time.Duration) {
	before := probeTimeout
	probeTimeout = d
	tb.Cleanup(func() { probeTimeout = before })
}

// Damage changes a byte of the payload of whatever has arrived in small slots
// from a peer. The caller polls them.
func Damage(t rdma.Transport, peer int) {
	for _, b := range t.(*Transport).pairs[peer].lanes[small].recvMem {
		b[headerBytes] ^= 1
	}
}

// ShortenProbe makes the probe shorter in all tests, which open hundreds of
// groups.
func ShortenProbe() { probeRoundTrips, probeBytes = 4, 256<<10 }

// SetFarewellLimit changes it for all tests: a fake delivers only what the
// receiver polls for, and on a busy machine that may take a while.
func SetFarewellLimit(d time.Duration) { farewellLimit = d }
