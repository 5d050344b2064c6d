package rdma

// A Transport moves messages between the ranks of one group. Algorithms know
// nothing of it but this interface; it knows nothing of them.
//
// The contract, which rdma/transporttest checks:
//
//   - Messages from one rank to another arrive whole, unchanged and in order.
//     The receiver knows each length beforehand.
//   - Any error from Send, Recv or SendRecv has already ended the transport
//     here and is on its way to the other ranks; it is the value of Err. The
//     same happens, with no call in progress, when a peer is lost.
//   - There is no context here: a message that is cut off leaves a pair of
//     ranks useless, so cancelling one operation means ending the transport,
//     and that is Abort. It returns every blocked call.
//   - Sends to different ranks, receives from different ranks, and a send and
//     a receive, may run at once. Calls in one direction of one pair take turns
//     in no promised order.
//   - Buffers belong to the transport until the call returns, then to the
//     caller again.
type Transport interface {
	// Kind names the transport: "mem", "tcp", "tcp+tls", "verbs", "solo".
	Kind() string
	// Rank is this process's place in the group, from 0.
	Rank() int
	// WorldSize is the number of ranks.
	WorldSize() int
	// EagerLimit is the length in bytes up to which Send does not wait for the
	// receiver, provided that the receiver has taken all earlier messages of
	// this pair. Longer messages, and more of them, may have to wait.
	EagerLimit() int

	// Send sends p to another rank. It blocks until p may be used again, which
	// may be only after the receiver has taken it.
	Send(to int, tag Tag, p []byte) error
	// Recv waits for the next message from a rank, without using the processor
	// after a brief poll, and stores it in p. A message with another tag or
	// length is a *MismatchError.
	Recv(from int, tag Tag, p []byte) error
	// SendRecv does both at once: neither direction waits for the other, so it
	// completes also when all ranks send first and whatever the lengths.
	SendRecv(tag Tag, to int, out []byte, from int, in []byte) error

	// Abort ends the transport on every rank with this cause, unless it has
	// ended already. It does not block.
	Abort(cause error)
	// Close takes leave from the peers, ends the transport here with ErrClosed
	// and frees what it holds. What was sent before still arrives. It waits for
	// the transport's goroutines, about a quarter of a second at the worst, and
	// may be called again.
	Close() error
	// Done is closed when the transport has ended for whatever reason.
	Done() <-chan struct{}
	// Err is nil before that and then the first cause.
	Err() error
}
