package tcp_test

import (
	"net"
	"testing"
	"time"

	"daisy/rdma/tcp"
	"daisy/rdma/tcp/tcptest"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// TestHandshakeRefuses: both ends refuse, and say why.
func TestHandshakeRefuses(t *testing.T) {
	type side struct {
		rank, world int
		epoch       uint64
	}
	for _, c := range []struct {
		name         string
		a, b         side
		aSays, bSays string
	}{
		{"epoch", side{0, 2, 5}, side{1, 2, 6}, "it is in epoch 6, this rank in epoch 5", "it is in epoch 5, this rank in epoch 6"},
		{"world size", side{0, 2, 5}, side{1, 3, 5}, "its group has 3 ranks, this one 2", "its group has 2 ranks, this one 3"},
		{"rank", side{0, 2, 5}, side{0, 2, 5}, "it is rank 0", "it is rank 0"},
	} {
		for _, secure := range []bool{false, true} {
			t.Run(c.name, func(t *testing.T) {
				defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
				conns, err := tcptest.Conns(2, secure)
				require.NoError(t, err)
				join := func(s side, c net.Conn, result chan error) {
					conns := make([]net.Conn, s.world)
					for r := range conns {
						if r != s.rank {
							conns[r] = c
							break
						}
					}
					if s.world == 3 { // a peer more, which says nothing
						x, y, err := tcptest.Pair()
						if err != nil {
							result <- err
							return
						}
						y.Close()
						conns[2] = x
					}
					_, err := tcp.New(s.rank, s.world, s.epoch, conns)
					result <- err
				}
				a, b := make(chan error, 1), make(chan error, 1)
				go join(c.a, conns[0][1], a)
				go join(c.b, conns[1][0], b)
				require.ErrorContains(t, <-a, c.aSays)
				require.ErrorContains(t, <-b, c.bSays)
			})
		}
	}
}

func TestHandshakeWithStrangers(t *testing.T) {
	for _, c := range []struct {
		name, says, want string
	}{
		{"other protocol", "HTTP/1.1 400 Bad Request\r\n\r\n1234567890", "does not speak this protocol"},
		{"other version", "DAISYtcp\x02\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00",
			"it speaks version 2 of the protocol, this rank version 1"},
		{"for another rank", "DAISYtcp\x01\x00\x00\x00\x01\x00\x00\x00\x07\x00\x00\x00\x02\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00",
			"it takes this rank 0 for rank 7"},
		{"half a hello", "DAISYtcp\x01", "i/o timeout"},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			x, y, err := tcptest.Pair()
			require.NoError(t, err)
			defer y.Close()
			_, err = y.Write([]byte(c.says))
			require.NoError(t, err)
			_, err = tcp.NewWithin(100*time.Millisecond, 0, 2, 5, []net.Conn{nil, x})
			require.ErrorContains(t, err, "handshake with rank 1")
			require.ErrorContains(t, err, c.want)
			_, err = x.Write([]byte{1})
			require.ErrorIs(t, err, net.ErrClosed, "New has taken the connection over")
		})
	}
}

func TestNewRefuses(t *testing.T) {
	x, y := net.Pipe()
	defer y.Close()
	_, err := tcp.New(0, 2, 1, []net.Conn{nil, x})
	require.ErrorContains(t, err, "no TCP connection but a *net.pipe")
	for _, c := range []struct{ rank, world, conns int }{{-1, 2, 2}, {2, 2, 2}, {0, 2, 1}, {0, 0, 0}, {0, 1 << 20, 2}} {
		_, err := tcp.New(c.rank, c.world, 1, make([]net.Conn, c.conns))
		require.Error(t, err)
	}
	_, err = tcp.New(0, 2, 1, make([]net.Conn, 2))
	require.ErrorContains(t, err, "rank 1")
}
