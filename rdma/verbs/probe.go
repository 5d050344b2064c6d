package verbs

import (
	"fmt"
	"slices"
	"time"

	"daisy/rdma"
)

// What the probe sends. Tests change it; it is the same on all ranks.
var (
	probeRoundTrips = 64
	probeBytes      = 2 << 20
)

// probeTimeout bounds the probe of a pair and the wait for its other side,
// which may have other pairs to probe first. A cable needs about two
// milliseconds. Tests change it.
var probeTimeout = 10 * time.Second

// probe measures a pair that has just come up, and with it shows that it works:
// half the median round trip of an empty message, and the bandwidth of long
// ones from this rank to the peer. Both sides call it at once.
func (t *Transport) probe(p *pair, first bool) (latency time.Duration, bandwidth float64, err error) {
	deadline := time.Now().Add(probeTimeout)
	seq := uint32(0)
	move := func(send bool, b []byte) error {
		seq++
		tag := rdma.Tag{Op: opHandshake, Seq: seq, Bytes: uint64(len(b))}
		if send {
			return t.run(&outgoing{pair: p, tag: tag, rest: b}, nil, deadline)
		}
		return t.run(nil, &incoming{pair: p, tag: tag, rest: b}, deadline)
	}
	trips := make([]time.Duration, probeRoundTrips)
	for i := range trips {
		start := time.Now()
		for _, mine := range []bool{first, !first} {
			if err := move(mine, nil); err != nil {
				return 0, 0, fmt.Errorf("round trip %d of %d: %w", i+1, len(trips), err)
			}
		}
		trips[i] = time.Since(start)
	}
	slices.Sort(trips)
	b := make([]byte, probeBytes)
	for _, mine := range []bool{first, !first} {
		start := time.Now()
		err := move(mine, b)
		if err == nil {
			err = move(!mine, nil) // all of it has been taken
		}
		if err != nil {
			return 0, 0, fmt.Errorf("%d bytes: %w", probeBytes, err)
		}
		if mine {
			bandwidth = float64(probeBytes) / max(time.Since(start), 1).Seconds()
		}
	}
	return trips[len(trips)/2] / 2, bandwidth, nil
}
