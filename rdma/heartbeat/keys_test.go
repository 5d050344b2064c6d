package heartbeat

import (
	"crypto/tls"
	"testing"

	"github.com/stretchr/testify/require"

	"daisy/rdma/tcp/tcptest"
)

// TestKeys: both ends of a connection have the same keys, every direction,
// epoch and connection has others.
func TestKeys(t *testing.T) {
	seen := map[Key]bool{}
	for range 2 {
		conns, err := tcptest.Conns(2, true)
		require.NoError(t, err)
		a, b := conns[0][1].(*tls.Conn), conns[1][0].(*tls.Conn)
		done := make(chan error, 1)
		go func() { done <- b.Handshake() }()
		require.NoError(t, a.Handshake())
		require.NoError(t, <-done)
		for epoch := range uint64(2) {
			aOut, aIn, err := Keys(a.ConnectionState(), epoch, 0, 1)
			require.NoError(t, err)
			bOut, bIn, err := Keys(b.ConnectionState(), epoch, 1, 0)
			require.NoError(t, err)
			require.Equal(t, aOut, bIn)
			require.Equal(t, aIn, bOut)
			require.NotContains(t, seen, aOut)
			seen[aOut] = true
			require.NotContains(t, seen, aIn)
			seen[aIn] = true
		}
		a.NetConn().Close()
		b.NetConn().Close()
	}
	_, _, err := Keys(tls.ConnectionState{}, 1, 0, 1)
	require.Error(t, err)
}
