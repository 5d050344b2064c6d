// Package verbs is the rdma transport that exchanges data by RDMA: over
// Thunderbolt cables between Macs, over any device of libibverbs on Linux.
//
// # Use
//
// The caller first connects the ranks by another transport, such as tcp, and
// hands that to New, which is the base: it carries the handshake, abort notices
// and the loss of peers, and the data of pairs that have no verbs.
//
//	base, err := tcp.New(rank, worldSize, epoch, conns)
//	t, err := verbs.New(base, verbs.Options{Epoch: epoch})
//	g := rdma.NewGroup(t, epoch)
//
// New returns when every pair of ranks has been brought up, probed and
// measured, or given up; Links says which, and why. A process calls Shutdown
// before it ends, also on SIGTERM, after it has closed its groups: drivers have
// been seen to lose what a process leaves behind.
//
// # Bring-up
//
// All ranks go through the same rounds of messages on the base (handshake.go),
// whether they have devices or not. Each tells its ports that are active and
// have an IPv4-mapped GID; which ports face each other follows from names given
// in Options.Cables, or else from addresses in one network (match.go). Then
// every pair makes its queue pairs, exchanges their numbers, goes to
// ready-to-receive and ready-to-send, posts all receives, says so, and sends
// its first slots as a probe. The step to ready-to-receive is done once, with a
// limit; a driver that does not come back makes the device unusable for the
// rest of the process. A failure at any step leaves the pair to the base on
// both sides, with the reason.
//
// # Wire format, version 1
//
// A pair has up to four rails, one for each cable, and a rail two queue pairs:
// one with slots of 8 KiB for short messages and the ends of long ones, one
// with slots of 128 KiB. A SEND is always a whole slot, because the receive
// that takes it must span as many frames. A message becomes a sequence of
// slots, spread over the rails and numbered in one sequence for each direction
// of the pair, by which the receiver puts them in order. All integers are
// little-endian:
//
//	 0  uint32      magic, the bytes "DSYv"
//	 4  uint8       kind: 1 data, 2 credit, 3 bye, 4 bye was seen
//	 5  uint8       operation   \
//	 6  uint16      root         | the rdma.Tag; zero
//	 8  uint32      sequence     | unless kind is data
//	16  uint64      bytes       /
//	12  uint32      length of the payload, at most the slot's less 64
//	24  uint64      data: what is left of the message, this payload included
//	32  uint32      number of the slot in its direction (not counted: 2, 4)
//	36  uint32      CRC-32C of header and payload with zero here, or zero
//	40  uint64      epoch
//	48  8 × uint16  slots with data taken from the receiver of this one, modulo
//	                65536, by rail·2 + class
//	64  …           payload
//
// # Flow control
//
// A lane (a queue pair) has a window of slots with data; the sender uses a slot
// when it is sure that the receive for it is posted. News of slots taken travel
// in the header of every slot, and in a slot of their own when half a window
// has gathered. For those the first small lane has receives beyond the window,
// so they never wait for the peer. This makes it impossible to post a SEND
// without a receive, which unreliable Linux queue pairs would drop in silence,
// or more frames than the port's budget allows. Apple's hardware holds such
// SENDs back by itself; nothing here relies on that.
//
// # How it waits
//
// Whoever calls Send or Recv polls the completion queues of that pair: without
// a pause for some twenty microseconds, yielding for some hundred and fifty,
// then sleeping longer and longer up to a millisecond (wait.go). There are no
// events and no goroutine between. A peer that sends nothing is merely late:
// that it lives is the base's matter, and the base's end is looked for in every
// wait. One goroutine polls pairs that nobody uses forty times a second and, when
// nothing moves on a device, looks at its port ten times a second, since a
// pulled cable shows nowhere else. In groups where some pairs are on the base
// there is one goroutine for each peer that sends long messages.
//
// # Failures
//
// A completion with a bad status, an error of the provider, a slot that is not
// the next one, or a port that goes down, ends the group on all ranks with a
// *LinkError: rank, device and a sentence. A fault inside Apple's provider ends
// the process; docs/adr/0002-faults-in-the-rdma-provider.md says what then.
//
// Of the known failures of Apple's provider, which package abi lists, these
// have tests here: silence after a pulled cable, in mid-operation and while
// idle; a dead peer; a call that does not come back from ready-to-receive, and
// no retry; errors with either sign at each call of the bring-up and of the data
// path; completions with a bad status; a full queue; idle queue pairs; frames
// within the port's budget. Not covered: the fault itself (see the ADR), kernel
// panics, a driver that hangs while a port is asked for its state.
//
// # Limits
//
// Messages of any length that the receiver expects; about half a MiB leaves
// without waiting for the receiver. Each rail takes at most 2.8 MiB of locked memory.
// Seven peers on one device at the most, where a device has several (Linux).
package verbs
