// Package tcp is the rdma transport over one established connection per pair of
// ranks, plain TCP or TLS over it.
//
// # Use
//
// The caller connects every pair and decides about authentication and
// encryption (TLS with whatever identities it trusts); New takes the
// connections over, checks with each peer that both mean the same group, and
// returns an rdma.Transport. With TLS, put Wire below it and set
// DynamicRecordSizingDisabled in its configuration: short first records cost
// latency after every pause.
//
//	conn := tls.Client(tcp.Wire(raw), config)
//
// # Wire format, version 1
//
// All integers are little-endian. Each side first sends a hello of 32 bytes:
//
//	 0  8 bytes  "DAISYtcp"
//	 8  uint32   version
//	12  uint32   rank of the sender
//	16  uint32   rank of the receiver
//	20  uint32   world size
//	24  uint64   epoch
//
// and refuses the other's when anything in it is not as expected. After that
// each direction is a sequence of frames, a header of 32 bytes and a payload:
//
//	 0  uint32   magic, the bytes "DSYf"
//	 4  uint8    kind: 1 data, 2 abort, 3 bye
//	 5  uint8    operation   \
//	 6  uint16   root         | the rdma.Tag; zero
//	 8  uint32   sequence     | unless kind is data
//	16  uint64   bytes       /
//	12  uint32   length of the payload
//	24  uint64   data: what is left of the message, this payload included
//
// A message is one data frame or, above 1 MiB, several that are all of 1 MiB but
// the last, so that an abort need not wait for all of it. The payload of an abort is rdma.AppendAbort's; it and
// bye are the last frame of a direction. A direction that ends without either
// means that the peer is lost.
//
// # How it waits
//
// Whoever calls Send or Recv reads and writes the connection itself; no
// goroutine is between. A wait polls for 50 µs before it sleeps, since sleeping
// and being woken takes longer than a short exchange; where that turns out to
// be in vain, because the peer takes longer or needs this core, nearly all waits
// sleep at once. SendRecv of a long message writes and reads in turns, and only
// when both are stuck for longer it leaves the writing to a goroutine of the
// peer's. There is one such goroutine per peer, and one for all peers that
// sleeps in the kernel until some peer's direction has ended: that is how a rank
// that waits for a second one learns of the loss of a third. A machine that
// vanishes without closing its connections is noticed only by TCP's own
// time-outs.
//
// # Limits
//
// Messages of any length that the receiver expects; 32 KiB leave without
// waiting for the receiver. A frame that claims more than the receiver expects
// is an error and allocates nothing. Beside a read buffer of 64 KiB per peer,
// up to 64 MiB may be kept of what a departed peer sent and was not yet
// received.
package tcp
