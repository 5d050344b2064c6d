package tcp_test

import (
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
