package heartbeat

import (
	"net"
	"net/netip"
	"syscall"
)

// bufferSize holds a datagram and one byte more, by which a longer one shows.
const bufferSize = datagramSize + 1

// receiveBuffer is asked of the system, so that little gets lost while this
// process does not run.
const receiveBuffer = 1 << 20

// A socket sends and receives datagrams. Read blocks until Close; Try does not
// block, and may be called while Read does.
type socket interface {
	Read(b []byte) (int, error)
	Try(b []byte) (n int, ok bool)
	WriteTo(b []byte, to netip.AddrPort) (int, error)
	Close() error
}

type udpSocket struct {
	*net.UDPConn
	raw syscall.RawConn
	// Try's, so that it allocates nothing; only one goroutine calls it.
	b   []byte
	n   int
	err error
	try func(fd uintptr)
}

func newSocket(conn *net.UDPConn) (*udpSocket, error) {
	_ = conn.SetReadBuffer(receiveBuffer) // less will do too
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	s := &udpSocket{UDPConn: conn, raw: raw}
	s.try = func(fd uintptr) { s.n, s.err = syscall.Read(int(fd), s.b) } // Go's sockets do not block
	return s, nil
}

// Read hides the connection's, which allocates the sender's address.
func (s *udpSocket) Read(b []byte) (int, error) {
	n, _, err := s.ReadFromUDPAddrPort(b)
	return n, err
}

func (s *udpSocket) Try(b []byte) (int, bool) {
	s.b = b
	if err := s.raw.Control(s.try); err != nil || s.err != nil || s.n < 0 {
		return 0, false
	}
	return s.n, true
}

func (s *udpSocket) WriteTo(b []byte, to netip.AddrPort) (int, error) {
	return s.WriteToUDPAddrPort(b, to)
}
