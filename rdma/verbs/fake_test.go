package verbs_test

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"testing"

	"daisy/rdma"
	"daisy/rdma/tcp/tcptest"
	"daisy/rdma/transporttest"
	"daisy/rdma/verbs"
	"daisy/rdma/verbs/fake"
	"daisy/rdma/verbs/provider"

	"github.com/stretchr/testify/require"
)

// A cabling is a fabric with one node for each rank.
type cabling struct {
	tb     testing.TB
	fabric fake.Fabric
	spies  []*spy
	desk
	n      int           // cables so far
	byRank map[int][]int // devices so far
	cables map[[2]int][]fake.Port
}

func node(rank int) string { return fmt.Sprintf("mac%d", rank) }

// newCabling makes the nodes; connect them before the first use.
func newCabling(tb testing.TB, fabric fake.Fabric, worldSize int) *cabling {
	c := &cabling{tb: tb, fabric: fabric, byRank: map[int][]int{}, cables: map[[2]int][]fake.Port{}}
	c.options = make([]verbs.Options, worldSize)
	for r := range c.options {
		c.options[r] = verbs.Options{Epoch: 7, Require: true}
	}
	return c
}

// cable joins two ranks with one more cable, which gets a network of its own.
func (c *cabling) cable(a, b int) {
	c.n++
	var ends [2]fake.Port
	for i, r := range []int{a, b} {
		c.byRank[r] = append(c.byRank[r], c.n)
		// Names are not alike at the two ends.
		ends[i] = fake.Port{Node: node(r), Device: fmt.Sprintf("rdma_en%d", len(c.byRank[r])+i)}
		if i == 1 {
			ends[i].Device = fmt.Sprintf("rdma_en%d", 20-len(c.byRank[r]))
		}
		require.NoError(c.tb, c.fabric.AddDevice(ends[i], fake.Options{
			IPv4: netip.AddrFrom4([4]byte{10, 1, byte(c.n), byte(1 + i)})}))
		c.cables[[2]int{r, []int{b, a}[i]}] = append(c.cables[[2]int{r, []int{b, a}[i]}], ends[i])
	}
	require.NoError(c.tb, c.fabric.Wire(ends[0], ends[1]))
}

// mesh joins all pairs.
func (c *cabling) mesh() *cabling {
	for a := range c.options {
		for b := range a {
			c.cable(b, a)
		}
	}
	return c
}

// port is this rank's end of its k-th cable to a peer.
func (c *cabling) port(rank, peer, k int) fake.Port { return c.cables[[2]int{rank, peer}][k] }

// open makes the hosts, and sees to it that nothing is left in the end.
func (c *cabling) open() *cabling {
	c.tb.Cleanup(func() { require.NoError(c.tb, c.fabric.Close()) })
	for r := range c.options {
		p, err := c.fabric.Provider(node(r))
		require.NoError(c.tb, err)
		s := newSpy(p)
		h := verbs.NewHost(s)
		c.spies, c.hosts = append(c.spies, s), append(c.hosts, h)
		c.tb.Cleanup(func() {
			require.NoError(c.tb, h.Close())
			for _, op := range []provider.Op{provider.OpCreateQP, provider.OpCreateCQ, provider.OpRegMR, provider.OpAllocPD, provider.OpOpen} {
				require.Zero(c.tb, s.alive(op), "rank %d: what was made by %q and not released", r, op)
			}
			for device, t := range s.devices {
				require.LessOrEqual(c.tb, t.maxSends, provider.FrameBudget, "%s: frames of sends outstanding", device)
				require.LessOrEqual(c.tb, t.maxRecvs, provider.FrameBudget, "%s: frames of receives outstanding", device)
			}
		})
	}
	return c
}

func TestConformanceOverMem(t *testing.T) {
	transporttest.Run(t, transporttest.Harness{
		Kind: "verbs",
		Open: func(tb testing.TB, worldSize int) []rdma.Transport {
			return newCabling(tb, fake.New(), worldSize).mesh().open().mustConnect(tb)
		},
		Kill:     kill,
		Worlds:   worlds([]int{2, 3, 5}, nil),
		MaxBytes: raceBytes,
	})
}

// tcpConns finds a killed rank's connections.
var tcpConns sync.Map // of []net.Conn, by base

// overTCP connects a desk whose base is TCP over loopback.
func overTCP(tb testing.TB, d desk) []rdma.Transport {
	conns, err := tcptest.Conns(len(d.options), false)
	require.NoError(tb, err)
	bases, err := tcptest.Transports(conns, 7)
	require.NoError(tb, err)
	for r, base := range bases {
		tcpConns.Store(base, conns[r])
	}
	ts, errs := d.connect(bases)
	for r, err := range errs {
		require.NoError(tb, err, "rank %d", r)
	}
	return ts
}

// killOverTCP closes the connections as the kernel does for a process that dies.
// No notice gets out any more.
func killOverTCP(t rdma.Transport) {
	conns, _ := tcpConns.Load(verbs.Base(t))
	for _, c := range conns.([]net.Conn) {
		if c != nil {
			c.Close()
		}
	}
	t.Abort(errors.New("killed"))
}

func TestConformanceOverTCP(t *testing.T) {
	transporttest.Run(t, transporttest.Harness{
		Kind: "verbs",
		Open: func(tb testing.TB, worldSize int) []rdma.Transport {
			return overTCP(tb, newCabling(tb, fake.New(), worldSize).mesh().open().desk)
		},
		Kill:     killOverTCP,
		Worlds:   worlds([]int{3}, []int{2, 3}),
		MaxBytes: raceBytes,
	})
}

// TestConformanceTwoCables has two cables between every two ranks.
func TestConformanceTwoCables(t *testing.T) {
	transporttest.Run(t, transporttest.Harness{
		Kind: "verbs",
		Open: func(tb testing.TB, worldSize int) []rdma.Transport {
			return newCabling(tb, fake.New(), worldSize).mesh().mesh().open().mustConnect(tb)
		},
		Kill:     kill,
		Worlds:   worlds([]int{3}, []int{2, 3}),
		MaxBytes: raceBytes,
	})
}

// TestTwoCables: a long message takes both.
func TestTwoCables(t *testing.T) {
	c := twoRanks(t, 2)
	ts := c.mustConnect(t)
	defer closeAll(ts)
	for range 8 {
		exchange(t, ts)
	}
	for rank := range 2 {
		a, b := c.spies[rank].seen(c.port(rank, 1-rank, 0).Device), c.spies[rank].seen(c.port(rank, 1-rank, 1).Device)
		require.Greater(t, a.bulkSends, 50)
		require.Greater(t, b.bulkSends, 50)
	}
}

// TestMixed has cables between neighbours alone; the other pairs are the
// base's. Messages of all lengths go around both ways, and collectives work.
func TestMixed(t *testing.T) {
	const world = 4
	c := newCabling(t, fake.New(), world)
	for r := range world {
		c.options[r].Require = false
		if r > 0 {
			c.cable(r-1, r)
		}
	}
	ts := c.open().mustConnect(t)
	results := make(chan error, world)
	for r, tr := range ts {
		require.Equal(t, "verbs+mem", tr.Kind())
		for _, l := range tr.(rdma.Linker).Links() {
			want := "mem"
			if l.Peer == r-1 || l.Peer == r+1 {
				want = "verbs"
			}
			require.Equal(t, want, l.Kind, "from %d to %d", r, l.Peer)
		}
		go func() { results <- around(t, r, tr) }()
	}
	for range ts {
		require.NoError(t, wait(t, results))
	}
	closeAll(ts)
}

func around(t *testing.T, r int, tr rdma.Transport) error {
	world := tr.WorldSize()
	for _, n := range []int{0, 1, 4032, 4033, 8128, 8129, 40640, 40641, 1 << 20, 5 << 20} {
		for step := 1; step < world; step++ {
			to, from := (r+step)%world, (r+world-step)%world
			out, in := bytes.Repeat([]byte{byte(r)}, n), make([]byte, n)
			if err := tr.SendRecv(rdma.Tag{Op: rdma.OpSend, Seq: uint32(step), Bytes: uint64(n)}, to, out, from, in); err != nil {
				return err
			}
			if !bytes.Equal(in, bytes.Repeat([]byte{byte(from)}, n)) {
				return fmt.Errorf("%d bytes from rank %d are wrong", n, from)
			}
		}
	}
	g := rdma.NewGroup(tr, 7)
	for _, n := range []int{1, 5000, 1 << 20} {
		x := make([]float32, n)
		x[n-1] = float32(r + 1)
		if err := g.AllReduce(t.Context(), x); err != nil {
			return err
		}
		if x[n-1] != float32(world*(world+1)/2) {
			return fmt.Errorf("the sum is %v", x[n-1])
		}
	}
	return nil
}
