package rdma

import "fmt"

// Op says which operation a message belongs to. Its values are on the wire.
type Op uint8

const (
	OpSend      Op = 1 // Send on one side, Recv on the other
	OpAllReduce Op = 2
	OpAllGather Op = 3
	OpBroadcast Op = 4
	OpBarrier   Op = 5
)

// String gives the operation's name as users read it in errors.
func (o Op) String() string {
	switch o {
	case OpSend:
		return "send/receive"
	case OpAllReduce:
		return "all-reduce"
	case OpAllGather:
		return "all-gather"
	case OpBroadcast:
		return "broadcast"
	case OpBarrier:
		return "barrier"
	}
	return fmt.Sprintf("operation %d", uint8(o))
}

// A Tag names the operation that a message belongs to. Both sides of a message
// give one, and the transport refuses the message when they differ. Transports
// carry tags and compare them; only algorithms give them meaning.
type Tag struct {
	Op Op
	// Root is the broadcasting rank, 0 for other operations.
	Root uint16
	// Seq counts the group's collectives, or for OpSend the messages from this
	// sender to this receiver. It wraps around.
	Seq uint32
	// Bytes is the length of the whole operation, of which one message may be
	// a part: it tells apart calls that differ in size only.
	Bytes uint64
}

// String describes the call for an error message.
func (t Tag) String() string {
	if t.Op == OpBroadcast {
		return fmt.Sprintf("%v #%d of %d bytes from rank %d", t.Op, t.Seq, t.Bytes, t.Root)
	}
	return fmt.Sprintf("%v #%d of %d bytes", t.Op, t.Seq, t.Bytes)
}
