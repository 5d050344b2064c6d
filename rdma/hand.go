package rdma

// A hand is a goroutine that a group keeps to do one thing at a time beside
// what the caller does. stop ends it and waits for it.
type hand struct {
	work chan struct{}
	done chan error
	gone chan struct{}
}

// start starts the goroutine, which calls f for each begin.
func (h *hand) start(f func() error) {
	h.work, h.done, h.gone = make(chan struct{}), make(chan error, 1), make(chan struct{})
	go func() {
		defer close(h.gone)
		for range h.work {
			h.done <- f()
		}
	}()
}

// begin sets it to work; wait, which must follow, returns what f did.
func (h *hand) begin() { h.work <- struct{}{} }

func (h *hand) wait() error { return <-h.done }

// stop must not be called twice, nor before wait.
func (h *hand) stop() {
	close(h.work)
	<-h.gone
}
