package node

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"daisy/rdma"
	"daisy/rdma/heartbeat"
)

// beat is this rank's UDP socket for one epoch. It is open from before the
// ranks connect, so that its port can be told.
type beat struct {
	mu   sync.Mutex   // guards conn
	conn *net.UDPConn // nil without a socket, and once it is the Monitor's
	port uint16       // what others are told; 0 without a socket
}

// openBeat opens the socket at the address where the server listens. A machine
// that allows none takes part without a heartbeat.
func (n *Node) openBeat() *beat {
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(n.server.Addr().Addr(), 0)))
	if err != nil {
		n.config.Log.Warn("no heartbeat", "error", err)
		return &beat{}
	}
	port := conn.LocalAddr().(*net.UDPAddr).AddrPort().Port()
	return &beat{conn: conn, port: n.beatPort(port)}
}

// take hands the socket over.
func (b *beat) take() *net.UDPConn {
	b.mu.Lock()
	defer b.mu.Unlock()
	conn := b.conn
	b.conn = nil
	return conn
}

func (b *beat) close() {
	if conn := b.take(); conn != nil {
		conn.Close()
	}
}

// beatPeers are the ranks that have a heartbeat: each at the address of its data
// connection, with keys that only the two ends of that have.
func (a *assembly) beatPeers(conns []net.Conn, ports []uint16) (peers []heartbeat.Peer, err error) {
	for r, c := range conns {
		if c == nil || r >= len(ports) || ports[r] == 0 {
			continue
		}
		secure, ok := c.(interface{ ConnectionState() tls.ConnectionState })
		if !ok {
			return nil, fmt.Errorf("the connection to rank %d is a %T, without keys", r, c)
		}
		remote, err := netip.ParseAddrPort(c.RemoteAddr().String())
		if err != nil {
			return nil, fmt.Errorf("heartbeat of rank %d: %w", r, err)
		}
		p := heartbeat.Peer{Rank: r, Addr: netip.AddrPortFrom(remote.Addr().Unmap(), ports[r])}
		if p.Out, p.In, err = heartbeat.Keys(secure.ConnectionState(), a.epoch, a.rank, r); err != nil {
			return nil, err
		}
		peers = append(peers, p)
	}
	return peers, nil
}

// watch starts the heartbeat, if there is somebody to watch. A rank that falls
// silent ends the transport on every rank.
func (a *assembly) watch(transport rdma.Transport, peers []heartbeat.Peer, lost func(*rdma.PeerLostError)) (*heartbeat.Monitor, error) {
	conn := a.beat.take()
	if conn == nil {
		return nil, nil
	}
	if len(peers) == 0 {
		conn.Close()
		return nil, nil
	}
	return heartbeat.Start(conn, heartbeat.Config{
		Epoch: a.epoch, Rank: a.rank, Peers: peers,
		Lost: func(rank int, reason error) {
			cause := &rdma.PeerLostError{Rank: rank, Cause: reason}
			lost(cause)
			transport.Abort(cause)
		},
		Unheard: func(rank int) {
			a.node.config.Log.Warn("no heartbeat arrives: is UDP blocked? a loss will be noticed later",
				"epoch", a.epoch, "rank", rank, "node", a.members[rank].Name)
		},
	})
}
