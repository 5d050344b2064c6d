package rdma

import "fmt"

// Op says which operation a message belongs to. Its values are on the wire: the
// operation in the lower four bits and, for sums, how values travel in the
// upper four, so that ranks which disagree on either notice.
type Op uint8

const (
	OpSend          Op = 1 // Send on one side, Recv on the other
	OpAllReduce     Op = 2
	OpAllGather     Op = 3
	OpBroadcast     Op = 4
	OpBarrier       Op = 5
	OpReduceScatter Op = 6
)

// as is the sum o with its values in another form.
func (o Op) as(w Wire) Op { return o | Op(w)<<4 }

// String gives the operation's name as users read it in errors.
func (o Op) String() string {
	name := ""
	switch o & 0xf {
	case OpSend:
		name = "send/receive"
	case OpAllReduce:
		name = "all-reduce"
	case OpAllGather:
		name = "all-gather"
	case OpBroadcast:
		name = "broadcast"
	case OpBarrier:
		name = "barrier"
	case OpReduceScatter:
		name = "reduce-scatter"
	default:
		return fmt.Sprintf("operation %d", uint8(o))
	}
	if w := Wire(o >> 4); w != F32 {
		name += " in " + w.String()
	}
	return name
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
