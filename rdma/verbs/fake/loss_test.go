package fake_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"daisy/rdma/verbs/fake"
	"daisy/rdma/verbs/provider"
)

// TestPeerDies: nothing tells. What was credited completes, posts succeed, and
// then there is silence.
func TestPeerDies(t *testing.T) {
	both(t, func(t *testing.T, f fake.Fabric) {
		a, b := pair(t, f, fake.Options{}, usual)
		require.NoError(t, b.recv(1, high, 4096))
		require.NoError(t, a.send(2, 0, 4096))
		a.good(2, provider.OpSend)
		require.NoError(t, f.Freeze("b"))
		b.silent()
		require.NoError(t, a.recv(3, high, 4096))
		require.NoError(t, a.send(4, 0, 4096))
		a.silent()
		attr, err := a.ctx.QueryPort(1)
		require.NoError(t, err)
		require.Equal(t, provider.PortActive, attr.State)
	})
}

// TestPull: the ports go down, the queue pairs go silent, and stay so when the
// cable is in again; new ones work.
func TestPull(t *testing.T) {
	both(t, func(t *testing.T, f fake.Fabric) {
		a, b := pair(t, f, fake.Options{}, usual)
		require.NoError(t, b.recv(1, high, 4096))
		require.NoError(t, f.Pull(right))
		for range 2 {
			require.NoError(t, a.send(2, 0, 4096))
			a.silent()
			b.silent()
			attr, err := a.ctx.QueryPort(1)
			require.NoError(t, err)
			if attr.State == provider.PortActive {
				break
			}
			require.NoError(t, f.Wire(left, right))
		}
		require.NoError(t, a.qp.Destroy())
		require.NoError(t, b.qp.Destroy())
		a.qp, b.qp = a.newQP(usual), b.newQP(usual)
		a.connect(b.endpoint())
		b.connect(a.endpoint())
		require.NoError(t, b.recv(5, high, 4096))
		require.NoError(t, a.send(6, 0, 4096))
		a.good(6, provider.OpSend)
		b.good(5, provider.OpRecv)
	})
}

// TestMisunderstanding: wrong numbers of the peer connect without complaint,
// and nothing ever arrives.
func TestMisunderstanding(t *testing.T) {
	for name, spoil := range map[string]func(*provider.Endpoint){
		"queue pair": func(e *provider.Endpoint) { e.QPN++ },
		"sequence":   func(e *provider.Endpoint) { e.PSN++ },
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, f fake.Fabric) {
				wired(t, f, fake.Options{})
				a, b := newSide(t, f, left, usual), newSide(t, f, right, usual)
				to := b.endpoint()
				spoil(&to)
				a.connect(to)
				b.connect(a.endpoint())
				require.NoError(t, a.recv(1, high, 4096))
				require.NoError(t, b.send(2, 0, 4096))
				a.silent()
				b.silent()
			})
		})
	}
}

// TestChain: a node between two others, and two cables between two nodes: each
// cable is its own.
func TestChain(t *testing.T) {
	both(t, func(t *testing.T, f fake.Fabric) {
		cables := [][2]fake.Port{
			{{Node: "a", Device: "rdma_en2"}, {Node: "b", Device: "rdma_en2"}},
			{{Node: "a", Device: "rdma_en3"}, {Node: "b", Device: "rdma_en3"}},
			{{Node: "b", Device: "rdma_en4"}, {Node: "c", Device: "rdma_en2"}},
		}
		var sides [][2]*side
		for i, c := range cables {
			for _, p := range c {
				require.NoError(t, f.AddDevice(p, fake.Options{}))
			}
			require.NoError(t, f.Wire(c[0], c[1]))
			a, b := newSide(t, f, c[0], usual), newSide(t, f, c[1], usual)
			a.connect(b.endpoint())
			b.connect(a.endpoint())
			a.mem[0] = byte(100 + i)
			sides = append(sides, [2]*side{a, b})
		}
		for _, s := range sides {
			require.NoError(t, s[1].recv(1, high, 4096))
		}
		for i := range sides {
			s := sides[len(sides)-1-i]
			require.NoError(t, s[0].send(2, 0, 4096))
		}
		for i, s := range sides {
			s[0].good(2, provider.OpSend)
			s[1].good(1, provider.OpRecv)
			require.Equal(t, byte(100+i), s[1].mem[high])
		}
		// The second cable of the same two nodes is not a way to the first's.
		wrong := sides[0][0].newQP(usual)
		require.NoError(t, wrong.Modify(provider.ToInit(1)))
		require.ErrorIs(t, wrong.Modify(sides[0][0].rtr(sides[1][1].endpoint())), provider.ErrUnreachable)
		require.NoError(t, f.Pull(cables[0][0]))
		require.NoError(t, sides[1][1].recv(3, high, 4096))
		require.NoError(t, sides[1][0].send(4, 0, 4096))
		sides[1][1].good(3, provider.OpRecv)
	})
}
