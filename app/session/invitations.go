package session

import (
	"context"
	"sync"
)

// Invitation asks whether this Mac may join somebody's cluster.
type Invitation struct {
	ID     int64    // given by Ask
	Leader string   // name of the Mac that asks
	Model  string   // what would run
	Bytes  int64    // of its file
	Nodes  []string // names of all Macs that would take part
}

// Invitations brings a node's question to a person and the answer back.
type Invitations struct {
	mu      sync.Mutex // guards the fields below
	next    int64
	pending []waiting
	notify  func()
}

type waiting struct {
	Invitation
	answer chan bool // capacity 1
}

// Ask blocks until somebody answers, and says no when ctx ends first or when
// nobody has called Notify, as then nobody would see the question.
func (v *Invitations) Ask(ctx context.Context, in Invitation) bool {
	v.mu.Lock()
	if v.notify == nil {
		v.mu.Unlock()
		return false
	}
	v.next++
	in.ID = v.next
	w := waiting{in, make(chan bool, 1)}
	v.pending = append(v.pending, w)
	notify := v.notify
	v.mu.Unlock()
	notify()
	select {
	case yes := <-w.answer:
		return yes
	case <-ctx.Done():
		if v.take(in.ID) != nil {
			notify()
			return false
		}
		return <-w.answer // answered at the same moment
	}
}

// Notify sets who is told, without blocking, that Pending has changed; nil:
// nobody.
func (v *Invitations) Notify(changed func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.notify = changed
}

// Pending lists the questions without an answer, oldest first.
func (v *Invitations) Pending() []Invitation {
	v.mu.Lock()
	defer v.mu.Unlock()
	list := make([]Invitation, len(v.pending))
	for i, w := range v.pending {
		list[i] = w.Invitation
	}
	return list
}

// Answer settles a question; nothing happens when it is settled already.
func (v *Invitations) Answer(id int64, yes bool) {
	if w := v.take(id); w != nil {
		w.answer <- yes
	}
}

// take removes a question from the pending ones.
func (v *Invitations) take(id int64) *waiting {
	v.mu.Lock()
	defer v.mu.Unlock()
	for i, w := range v.pending {
		if w.ID == id {
			v.pending = append(v.pending[:i:i], v.pending[i+1:]...)
			return &w
		}
	}
	return nil
}
