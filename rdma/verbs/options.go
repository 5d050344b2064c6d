package verbs

import (
	"time"

	"daisy/rdma/verbs/provider"
)

// Options are a group's, for one rank. The zero value suits most. Those that
// say so must be the same on all ranks.
type Options struct {
	// Epoch is the group's; slots of another one are refused. The same on all
	// ranks.
	Epoch uint64
	// Require makes Connect fail with ErrRequired when a pair of this rank
	// cannot use verbs, instead of leaving that pair to the base.
	Require bool
	// Off leaves all pairs of this rank to the base. It still takes part in the
	// handshake, so that the others learn of it.
	Off bool
	// Checksum protects every slot from end to end with a CRC-32C. A pair uses
	// it when either side asks.
	Checksum bool
	// Cables names, by peer, the local devices that face it. The k-th name on
	// one side and the k-th on the other are the two ends of one cable. Where
	// there are none, addresses tell which devices face each other.
	Cables map[int][]string
	// Type forces a kind of queue pair. Without it Thunderbolt uses UC, and
	// everything else RC where both ends have it.
	Type provider.QPType
	// MarkerDir is where a file says, while RDMA is in use, which devices are;
	// devices that a process used when it died rest for ten minutes. Empty: no
	// file. See docs/adr/0002-faults-in-the-rdma-provider.md.
	MarkerDir string
	// Timeout bounds Connect as a whole, two minutes if it is zero, and
	// StepTimeout the step that drivers hang in, provider.RTRDeadline if zero.
	Timeout, StepTimeout time.Duration
}

func (o Options) timeout() time.Duration {
	if o.Timeout > 0 {
		return o.Timeout
	}
	return 2 * time.Minute
}

func (o Options) stepTimeout() time.Duration {
	if o.StepTimeout > 0 {
		return o.StepTimeout
	}
	return provider.RTRDeadline
}
