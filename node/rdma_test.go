package node

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"daisy/rdma/verbs"
	"daisy/rdma/verbs/fake"
)

// cabled gives the nodes a cable between the first two; others have no devices.
func cabled(t *testing.T, nodes ...*Node) {
	t.Helper()
	fabric := fake.New()
	t.Cleanup(func() { require.NoError(t, fabric.Close()) })
	var ends [2]fake.Port
	for i := range ends {
		ends[i] = fake.Port{Node: nodes[i].config.Name, Device: fmt.Sprintf("rdma_en%d", 2+i)}
		require.NoError(t, fabric.AddDevice(ends[i], fake.Options{IPv4: netip.AddrFrom4([4]byte{10, 9, 0, byte(1 + i)})}))
	}
	require.NoError(t, fabric.Wire(ends[0], ends[1]))
	for _, n := range nodes {
		p, err := fabric.Provider(n.config.Name)
		require.NoError(t, err)
		h := verbs.NewHost(p)
		t.Cleanup(func() { // before the fabric's end, after the group's
			n.Close()
			require.NoError(t, h.Close())
		})
		n.upgrade = h.Connect
	}
}

// TestRDMA: pairs of ranks with a cable use it, others do not, and the answer is
// that of one node.
func TestRDMA(t *testing.T) {
	path := writeModel(t, 1)
	a, b, c := startNode(t, "a", yes, path), startNode(t, "b", yes, path), startNode(t, "c", yes, path)
	cabled(t, a, b, c)
	solo, err := a.Join(t.Context(), nil, modelOf(t, a), fast)
	require.NoError(t, err)
	want := ask(t, solo, 12)
	require.NoError(t, solo.Close())
	for _, x := range []struct {
		off     bool
		members []*Node
		kind    string
	}{
		{false, []*Node{b}, "verbs"},
		{false, []*Node{b, c}, "verbs+tcp+tls"},
		{true, []*Node{b}, "tcp+tls"},
	} {
		if x.off {
			b.config.RDMA = RDMAOff
		}
		ids := meet(t, a, x.members...)
		cluster, err := a.Join(t.Context(), ids, modelOf(t, a), fast)
		require.NoError(t, err)
		assert.Equal(t, want, ask(t, cluster, 12))
		assert.Equal(t, x.kind, cluster.now.group.Kind())
		links := cluster.now.group.Links()
		if x.off {
			assert.Equal(t, "rank 1: RDMA is switched off on this machine", links[0].Reason)
		} else {
			assert.Equal(t, "verbs", links[0].Kind)
			assert.Equal(t, "rdma_en2", links[0].Device)
			marks, err := filepath.Glob(filepath.Join(a.config.Dir, "rdma", "*"))
			require.NoError(t, err)
			assert.Len(t, marks, 1, "while devices are in use a file says so")
		}
		require.NoError(t, cluster.Close())
	}
	left, err := os.ReadDir(filepath.Join(a.config.Dir, "rdma"))
	require.NoError(t, err)
	assert.Empty(t, left)
}

// TestRDMARequired: without a cable such a group does not come to be, and
// everybody is told why.
func TestRDMARequired(t *testing.T) {
	path := writeModel(t, 1)
	a, b, c := startNode(t, "a", yes, path), startNode(t, "b", yes, path), startNode(t, "c", yes, path)
	cabled(t, a, b, c)
	a.config.RDMA = RDMARequire
	_, err := a.Join(t.Context(), meet(t, a, c), modelOf(t, a), fast)
	require.ErrorIs(t, err, verbs.ErrRequired)
	require.ErrorContains(t, err, "no RDMA devices")
	until(t, c, "the member is free", func() bool { return free(c) })
}

func TestRDMAUnknown(t *testing.T) {
	config := testConfig(t, t.TempDir(), "a", yes)
	config.RDMA = "sometimes"
	_, err := Start(t.Context(), config)
	require.ErrorContains(t, err, `RDMA "sometimes" is not off or require`)
}
