// Package rdma joins processes on several machines into a Group and gives the
// group collectives: all-reduce, reduce-scatter, all-gather, broadcast, barrier,
// and send and receive.
//
// # Use
//
// Somebody else decides who takes part and connects the machines. Every
// participant then makes a Transport of the same world size and epoch (see the
// packages below this one), wraps it with NewGroup, and calls the same
// collectives in the same order with the same sizes:
//
//	g := rdma.NewGroup(transport, epoch)
//	defer g.Close()
//	err := g.AllReduce(ctx, partialSums) // now the sum over all ranks
//
// A program that runs alone uses Solo and the same code.
//
// # Guarantees
//
//   - What a collective returns has the same bits on every rank (a NaN is a NaN
//     on every rank; its payload bits are not promised).
//   - The order of summation depends on the algorithm, the length and the world
//     size only, and the algorithm on length, world size, topology and kind of
//     transport (WholeLimit), so the same inputs give the same bits in every
//     run. Where every pair is connected, and for short inputs on a ring or
//     chain, it is ((v0 + v1) + v2) + … by rank. Long ones on a ring or chain
//     are summed from both sides towards the rank that looks after each part.
//   - Sums are formed in float32, whatever travels. With F16 and BF16 all
//     contributions are rounded to nearest, ties to even, a rank's own too.
//     Sums that have to travel are rounded again, on every rank alike;
//     AllReduceAs and ReduceScatter say when.
//   - Messages between two ranks arrive in the order in which they were sent.
//   - Ranks that call different collectives, or the same one with different
//     sizes or wire types, get ErrMismatch naming both; never wrong data.
//   - One rank's failure, loss, cancellation or passed deadline in
//     mid-collective ends the group on every rank, with the cause: nobody waits
//     for ever for a rank whose connection has gone. A group does not recover;
//     its owner makes a new one with a new epoch.
//   - No collective allocates, but to make room for one longer than all before.
//
// # Concurrency
//
// All methods may be called from any goroutine. Collectives of one group run
// one after the other. Send, Recv and collectives that share a pair of ranks
// share its order too, so a program must start them in an order that the other
// side expects; Sends and Recvs in both directions of a pair are independent of
// each other. A group on a ring or chain has one goroutine, for which Close
// waits.
//
// # Limits
//
// Little-endian machines only: values travel as they lie in memory. There is no
// confidentiality here; a transport has what its caller's connections give it
// (TLS over tcp). The transport carries messages between all pairs of ranks;
// those that it calls direct (Topology) are the ones that collectives use, as
// long as a ring or an open chain of them joins all ranks.
package rdma
