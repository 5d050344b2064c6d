package verbs

import (
	"net/netip"
	"sync"
	"testing"

	"daisy/rdma"
	"daisy/rdma/mem"
	"daisy/rdma/verbs/fake"

	"github.com/stretchr/testify/require"
)

// TestIdle lets a pair be idle for as long as it takes: something is sent then,
// and the peer takes it without a call.
func TestIdle(t *testing.T) {
	f := fake.New()
	a, b := fake.Port{Node: "a", Device: "rdma_en1"}, fake.Port{Node: "b", Device: "rdma_en5"}
	require.NoError(t, f.AddDevice(a, fake.Options{IPv4: netip.MustParseAddr("10.0.0.1")}))
	require.NoError(t, f.AddDevice(b, fake.Options{IPv4: netip.MustParseAddr("10.0.0.2")}))
	require.NoError(t, f.Wire(a, b))
	bases := mem.New(2)
	var ts [2]rdma.Transport
	var wg sync.WaitGroup
	for r, node := range []string{"a", "b"} {
		p, err := f.Provider(node)
		require.NoError(t, err)
		h := NewHost(p)
		defer func() { require.NoError(t, h.Close()) }()
		wg.Go(func() {
			var err error
			if ts[r], err = h.Connect(bases[r], Options{Require: true}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	require.False(t, t.Failed())
	p, q := ts[0].(*Transport).pairs[1], ts[1].(*Transport).pairs[0]
	posts := func(p *pair) uint64 {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.posts
	}
	before := posts(p)
	for range 3 * (idleTicks + 1) { // several times what the peer has spare slots for
		require.NoError(t, p.tick())
		require.NoError(t, q.tick())
	}
	require.GreaterOrEqual(t, posts(p), before+2)
	require.NoError(t, ts[0].Err())
	wg.Go(func() { ts[0].Close() })
	ts[1].Close()
	wg.Wait()
}
