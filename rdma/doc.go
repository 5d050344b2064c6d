// Package rdma joins processes on several machines into a Group and gives the
// group collectives: all-reduce, all-gather, broadcast, barrier, send and
// receive.
//
// # Use
//
// Somebody else decides who takes part and connects the machines. Every
// participant then makes a Transport of the same world size and epoch (see the
// packages mem and tcp), wraps it with NewGroup, and calls the same collectives
// in the same order with the same sizes:
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
//     on every rank; its payload bits are not promised). Sums are formed in
//     rank order 0, 1, …, N-1, whatever the algorithm, so the same inputs give
//     the same bits in every run.
//   - Messages between two ranks arrive in the order in which they were sent.
//   - Ranks that call different collectives, or the same one with different
//     sizes, get ErrMismatch naming both; never wrong data.
//   - One rank's failure, loss or cancellation in mid-collective ends the group
//     on every rank, with the cause: nobody waits for ever for a rank whose
//     connection has gone. A group does not recover; its owner makes a new one
//     with a new epoch.
//
// # Concurrency
//
// All methods may be called from any goroutine. Collectives of one group run
// one after the other. Send, Recv and collectives that share a pair of ranks
// share its order too, so a program must start them in an order that the other
// side expects; Sends and Recvs in both directions of a pair are independent of
// each other.
//
// # Limits
//
// Little-endian machines only: float32 values travel as they lie in memory.
// Every pair of ranks must be connected. There is no confidentiality here; a
// transport has what its caller's connections give it (TLS over tcp).
package rdma
