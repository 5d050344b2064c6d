package verbs_test

import (
	"sync"
	"testing"

	"daisy/rdma"
	"daisy/rdma/mem"
	"daisy/rdma/verbs"

	"github.com/stretchr/testify/require"
)

// A desk is what ranks are connected with: a host and the options of each.
type desk struct {
	hosts   []*verbs.Host
	options []verbs.Options
}

// connect runs Connect on all ranks at once.
func (d desk) connect(bases []rdma.Transport) ([]rdma.Transport, []error) {
	ts, errs := make([]rdma.Transport, len(bases)), make([]error, len(bases))
	var wg sync.WaitGroup
	for r := range bases {
		wg.Go(func() { ts[r], errs[r] = d.hosts[r].Connect(bases[r], d.options[r]) })
	}
	wg.Wait()
	return ts, errs
}

// mustConnect is connect over mem, where all ranks must succeed.
func (d desk) mustConnect(tb testing.TB) []rdma.Transport {
	tb.Helper()
	ts, errs := d.connect(mem.New(len(d.hosts)))
	for r, err := range errs {
		require.NoError(tb, err, "rank %d", r)
	}
	return ts
}

// kill ends a rank as the death of its process does: its base vanishes.
func kill(t rdma.Transport) { verbs.Base(t).(*mem.Transport).Kill() }

// worlds are the world sizes of a conformance suite. With the race detector,
// which takes ten times as long, there are fewer: .ci/test.sh runs the suites
// once more without it.
func worlds(race, all []int) []int {
	if raceEnabled {
		return race
	}
	return all
}

// closeAll closes transports together, as ranks do.
func closeAll(ts []rdma.Transport) {
	var wg sync.WaitGroup
	for _, t := range ts {
		wg.Go(func() { t.Close() })
	}
	wg.Wait()
}
