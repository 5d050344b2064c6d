package rdma

import "sync/atomic"

// Ending is how a transport ends: once, with the first cause. Transports embed
// one, made by NewEnding; it needs no lock of theirs.
type Ending struct {
	cause atomic.Pointer[error]
	done  chan struct{}
}

// NewEnding returns one that has not happened yet.
func NewEnding() *Ending { return &Ending{done: make(chan struct{})} }

// End records the cause and closes Done. It reports false, and does nothing,
// when there was a cause already.
func (e *Ending) End(cause error) bool {
	if !e.cause.CompareAndSwap(nil, &cause) {
		return false
	}
	close(e.done)
	return true
}

// Done is closed at the end.
func (e *Ending) Done() <-chan struct{} { return e.done }

// Err is nil before the end and then its cause.
func (e *Ending) Err() error {
	if p := e.cause.Load(); p != nil {
		return *p
	}
	return nil
}
