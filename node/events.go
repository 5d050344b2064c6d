package node

import (
	"context"
	"sync"
)

// Event is one of PeersChanged, ClusterChanged, PairingChanged, Progress, Paused and
// Continued.
type Event interface{ event() }

// PeersChanged says that Peers returns something new.
type PeersChanged struct{}

// ClusterChanged says that Cluster returns something new.
type ClusterChanged struct{}

// PairingChanged says that Pairing returns something new, or that somebody has
// confirmed the one that it returned.
type PairingChanged struct{}

// Progress says how far joining a cluster has come.
type Progress struct {
	Epoch uint64
	Stage Stage
	// Waiting names the nodes that have not come past this stage.
	Waiting []string
	// Loaded and Total count bytes of weights, summed over the nodes that this
	// one hears of: all on the leader, itself on the others. Total is 0 while
	// nothing is known.
	Loaded, Total int64
}

// Stage of joining.
type Stage string

// The stages, in order.
const (
	StageInviting Stage = "inviting" // the invited are being asked
	StageLoading  Stage = "loading"  // all accepted; weights are loaded
)

// Paused says that the cluster which this node leads has lost a member and is about
// to go on with the rest. Then comes Continued, or the cluster ends.
type Paused struct {
	Epoch uint64 // that ended
	Nodes int    // that are left, this one included
	Cause error  // a *NodeError that names the member
}

// Continued says that it goes on, and the answers with it.
type Continued struct {
	Epoch uint64 // the new one
	Nodes int
	Cause error // of the pause
}

func (PeersChanged) event()   {}
func (ClusterChanged) event() {}
func (PairingChanged) event() {}
func (Progress) event()       {}
func (Paused) event()         {}
func (Continued) event()      {}

// events passes events to subscribers from one goroutine. Several of a kind that
// are not yet delivered become one, the last, so a slow subscriber costs
// nothing but its own time.
type events struct {
	mu       sync.Mutex // guards the fields below
	waiting  []Event    // at most one of each kind, in order of their coming
	handlers map[int]func(Event)
	next     int
	wake     chan struct{} // buffer of one
}

func newEvents() *events {
	return &events{handlers: map[int]func(Event){}, wake: make(chan struct{}, 1)}
}

// Subscribe has handler called with each event, on a goroutine of the node: it
// must not block, and must not call Close. Events tell that something changed;
// several of one kind may become one. After cancel no further call begins.
func (n *Node) Subscribe(handler func(Event)) (cancel func()) {
	e := n.events
	e.mu.Lock()
	defer e.mu.Unlock()
	id := e.next
	e.next++
	e.handlers[id] = handler
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.handlers, id)
	}
}

func kind(e Event) int {
	switch e.(type) {
	case PeersChanged:
		return 0
	case ClusterChanged:
		return 1
	case Paused:
		return 2
	case Continued:
		return 3
	case PairingChanged:
		return 4
	default:
		return 5
	}
}

// emit queues an event. It never blocks.
func (e *events) emit(event Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i, w := range e.waiting {
		if kind(w) == kind(event) {
			e.waiting = append(e.waiting[:i], e.waiting[i+1:]...)
			break
		}
	}
	e.waiting = append(e.waiting, event)
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// deliver is the goroutine that calls the handlers, until ctx ends; what is
// queued then is still delivered.
func (e *events) deliver(ctx context.Context) {
	for {
		stopping := false
		select {
		case <-e.wake:
		case <-ctx.Done():
			stopping = true
		}
		for {
			e.mu.Lock()
			if len(e.waiting) == 0 {
				e.mu.Unlock()
				break
			}
			event := e.waiting[0]
			e.waiting = e.waiting[1:]
			ids := make([]int, 0, len(e.handlers))
			for id := range e.handlers {
				ids = append(ids, id)
			}
			e.mu.Unlock()
			for _, id := range ids {
				e.mu.Lock()
				handler := e.handlers[id]
				e.mu.Unlock()
				if handler != nil {
					handler(event)
				}
			}
		}
		if stopping {
			return
		}
	}
}
