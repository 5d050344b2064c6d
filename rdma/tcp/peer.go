package tcp

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
)

// A peer is this rank's end of one pair.
type peer struct {
	rank  int
	conn  net.Conn     // what frames go through
	wire  *Conn        // the same or what is below it; nil below TLS that the caller put on a connection of another kind
	raw   *net.TCPConn // below everything
	plain bool         // conn is wire

	// left is set when the peer has said bye.
	left atomic.Bool

	// long asks writeLong to write the rest of out while the caller keeps
	// writeMu locked; longSent has the result.
	long     chan struct{}
	longSent chan error

	writeMu sync.Mutex // guards the following, held for a whole message
	out     outgoing
	both    spin // of SendRecv
	cut     bool // a frame was not written to its end

	readMu     sync.Mutex // guards the following, held for a whole message
	in         incoming
	buf        []byte // buf[start:end] was read and not yet used
	start, end int
	dry        bool  // TLS had nothing left when it was asked last
	readErr    error // why there is nothing to read any more
}

// readBuffer holds a header and an eager message, so that one read gets both.
const readBuffer = 64 << 10

func newPeer(rank int, c net.Conn, wire *Conn, raw *net.TCPConn) *peer {
	return &peer{rank: rank, conn: c, wire: wire, raw: raw, plain: c == net.Conn(wire),
		long: make(chan struct{}), longSent: make(chan error, 1), buf: make([]byte, readBuffer)}
}

var errLeft = errors.New("it left the group")

// progress says how far a call of push or pull came.
type progress uint8

const (
	stuck progress = iota // nothing moved; only with look
	moved
	done // the message is complete
)
