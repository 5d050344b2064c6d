// Package linkbench measures the links of a group: latency and bandwidth of
// every pair of ranks, and the time of every collective, by size.
//
// # Use
//
// All ranks of a group call Run with the same options and get the same result.
// Two ranks that want to know their link in less than a tenth of a second call
// Pair, each with the other's rank.
//
// # What is measured
//
// As in the OSU micro-benchmarks (https://mvapich.cse.ohio-state.edu/benchmarks/):
//
//   - Send/receive (osu_latency, osu_bw): one rank sends, the other answers with
//     as much; the time is half a round trip. The bandwidth is that of up to 64
//     messages sent one after the other, of which only the last is answered.
//   - Collectives (osu_allreduce and so on): a barrier, then one operation that
//     is timed. Each size is warmed up before. An iteration's time is that of the
//     rank that took longest, since the next layer of a model waits for all.
//
// Percentiles are over iterations, by nearest rank. A size gets as many
// iterations as fit into Options.Budget, at least 10 and at most 10,000; rank 0
// decides, from what it saw while warming up.
//
// # Bus bandwidth
//
// It makes collectives comparable with the wire: it is what each rank's link
// carries in the best algorithm, for n ranks and t the median, after
// https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md:
//
//	all-reduce       2(n-1)/n · S/t    S: bytes of the vector
//	all-gather        (n-1)/n · S/t    S: bytes of the result, n times Bytes
//	reduce-scatter    (n-1)/n · S/t    S: bytes of the input, n times Bytes
//	broadcast                   S/t    S: bytes of the message
//	send/receive                S/t    of the streamed messages, measured apart
//	barrier          none
//
// Row.Bytes is what OSU calls the size: what one rank contributes or, for
// reduce-scatter, gets.
//
// # Concurrency and limits
//
// The group must be idle: nothing else may use it meanwhile. Nothing is started
// that outlives a call. Cancelling the context ends the group, as with any
// collective. Memory: 2n+2
// times the largest size.
package linkbench
