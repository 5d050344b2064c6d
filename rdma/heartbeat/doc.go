// Package heartbeat tells whether the processes of a group's other ranks still
// run. Ranks send each other small authenticated datagrams over UDP, beside the
// data, and a rank whose datagrams stop is reported as lost: its process was
// killed or stopped, its machine vanished, or the way between is broken.
//
// # Use
//
// The caller opens one UDP socket for each group, tells every other rank its
// port, takes the keys of each pair from the pair's TLS connection (Keys), and
// starts a Monitor. What to do about a loss is the caller's: usually
//
//	transport.Abort(&rdma.PeerLostError{Rank: rank, Cause: reason})
//
// which ends the group on every rank.
//
// # Guarantees
//
//   - A rank that is heard and then stops is reported within Stats.Bound plus
//     half a round trip: 400 ms where the network neither loses nor delays
//     (480 ms in a pair's first seconds), more where it does, never more than
//     five seconds. DESIGN.md beside this
//     file has the formula and the chance of a false alarm.
//   - Time in which this process itself did not run counts against nobody, and
//     what has arrived meanwhile is read before anybody is judged. After a
//     pause of more than a second, as when the machine slept, nobody is
//     reported for two seconds more.
//   - A rank that was never heard is never reported: UDP may be blocked where
//     TCP is not. Config.Unheard tells of it after three seconds; liveness of
//     such a pair is then for the caller's other means.
//   - A rank that calls Close says goodbye and is not reported.
//   - Datagrams that are forged, replayed, cut or of another group are counted
//     and otherwise ignored. What they cost is a hash each.
//
// # Wire format, version 1
//
// A datagram has 72 bytes, integers are little-endian:
//
//	 0  4 bytes  "DSYh"
//	 4  uint8    version
//	 5  uint8    kind: 1 beat, 2 goodbye
//	 6  uint16   milliseconds between the sender's beats, 1 to 1000
//	 8  uint64   epoch
//	16  uint32   rank of the sender
//	20  uint32   rank of the receiver
//	24  uint64   counter, from 1, greater in every datagram of this direction
//	32  uint64   the sender's clock in nanoseconds, not 0
//	40  uint64   the clock of the receiver in its last datagram that the
//	             sender has seen; 0 for none
//	48  uint64   nanoseconds since that one came
//	56  16 bytes HMAC-SHA-256 of the above, its first half, under the key of
//	             this direction
//
// # Concurrency
//
// Two goroutines: one sends, judges and calls Lost and Unheard, one listens; Close
// waits for both. All methods may be called from any goroutine.
//
// # Limits
//
// Whoever can stop a pair's datagrams can make it look lost. There is no
// secrecy: that two ranks live, and their times, is no secret.
package heartbeat
