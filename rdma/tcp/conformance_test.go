package tcp_test

import (
	"crypto/tls"
	"testing"

	"daisy/rdma"
	"daisy/rdma/tcp"
	"daisy/rdma/tcp/tcptest"
	"daisy/rdma/transporttest"

	"github.com/stretchr/testify/require"
)

func harness(secure bool) transporttest.Harness {
	h := transporttest.Harness{
		Kind: "tcp",
		Open: func(tb testing.TB, worldSize int) []rdma.Transport {
			ts, err := tcptest.Loopback(worldSize, secure)
			require.NoError(tb, err)
			return ts
		},
		Kill: func(t rdma.Transport) { t.(*tcp.Transport).Kill() },
	}
	if secure {
		h.Kind = "tcp+tls"
		h.Allocations = 20 // crypto/tls allocates for every record that it opens
	}
	return h
}

func TestConformance(t *testing.T)    { transporttest.Run(t, harness(false)) }
func TestConformanceTLS(t *testing.T) { transporttest.Run(t, harness(true)) }

// TestConformanceBareTLS has nothing of ours below TLS.
func TestConformanceBareTLS(t *testing.T) {
	h := harness(true)
	h.Open = func(tb testing.TB, worldSize int) []rdma.Transport {
		client, server, err := tcptest.Configs()
		require.NoError(tb, err)
		conns, err := tcptest.Conns(worldSize, false)
		require.NoError(tb, err)
		for a := range conns {
			for b := range a {
				conns[a][b], conns[b][a] = tls.Client(conns[a][b], client), tls.Server(conns[b][a], server)
			}
		}
		ts, err := tcptest.Transports(conns, 1)
		require.NoError(tb, err)
		return ts
	}
	transporttest.Run(t, h)
}
