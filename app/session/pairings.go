package session

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// Friend is a Mac that this one is paired with.
type Friend struct {
	ID      string
	Name    string
	Since   time.Time
	Consent string // "ask", "always" or "never": what its invitations meet
}

// Attempt is a pairing whose digits are known.
type Attempt interface {
	ID() string   // of the other Mac
	Name() string // that it gives itself
	Digits() string
	Incoming() bool // the other Mac began
	Confirm()
	Refuse()
	Confirmed() (here, there bool)
	Done() <-chan struct{}
	Err() error
}

// Pairer is what Pairings needs of a node.
type Pairer interface {
	// Pair makes the digits with a Mac; it blocks for some seconds at most.
	Pair(ctx context.Context, id string) (Attempt, error)
	// Pairing is the attempt that goes on, or nil; the same one is equal.
	Pairing() Attempt
	Friends() []Friend
	Forget(id string) error
	SetConsent(id, consent string) error
	// Watch has changed called, on the node's goroutine, when Pairing, what it
	// says, or Friends has changed.
	Watch(changed func()) (cancel func())
}

// PairPhase is where a pairing stands.
type PairPhase int

// The phases.
const (
	NoPairing PairPhase = iota
	Reaching            // the other Mac is being reached; no digits yet
	Comparing           // the person here is to compare the digits
	Waiting             // confirmed here, not yet there
	Paired              // the two trust each other
	NotPaired           // it failed: Err
)

// PairState is a pairing for showing.
type PairState struct {
	Phase    PairPhase
	ID, Name string
	Digits   string // with Comparing and Waiting
	Incoming bool
	Theirs   bool // confirmed on the other Mac
	// SameName: another Mac of this name is paired already, with another key.
	SameName bool
	Err      error
}

// Pairings is the view model of the pairing window and of the list of paired
// Macs.
type Pairings struct {
	node    Pairer
	paired  func(id string) // a pairing that was begun here has come about
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	unwatch func()
	wg      sync.WaitGroup

	mu        sync.Mutex // guards the fields below
	closed    bool
	observers map[int]func()
	nextID    int
	state     PairState
	attempt   Attempt            // of state, or the last one
	stop      context.CancelFunc // with Reaching
	err       error              // of Remove and SetConsent
}

// NewPairings begins to watch the node, which stays the caller's. paired may be
// nil; it is told of each pairing that was begun here and has come about. Close
// ends it.
func NewPairings(node Pairer, paired func(id string)) *Pairings {
	ctx, cancel := context.WithCancel(context.Background())
	p := &Pairings{node: node, paired: paired, ctx: ctx, cancel: cancel, observers: map[int]func(){}}
	p.unwatch = node.Watch(p.nodeChanged)
	p.nodeChanged()
	return p
}

// Close refuses what is not settled and waits for all that runs.
func (p *Pairings) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.unwatch()
	p.Refuse()
	p.cancel()
	p.wg.Wait()
}

// Subscribe has changed called, from any goroutine, whenever State, Friends or
// Err may give something new.
func (p *Pairings) Subscribe(changed func()) (cancel func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id := p.nextID
	p.nextID++
	p.observers[id] = changed
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.observers, id)
	}
}

func (p *Pairings) tell() {
	p.mu.Lock()
	var list []func()
	for _, f := range p.observers {
		list = append(list, f)
	}
	p.mu.Unlock()
	for _, f := range list {
		f()
	}
}

// State is the pairing to show now.
func (p *Pairings) State() PairState {
	p.mu.Lock()
	s, a := p.state, p.attempt
	p.mu.Unlock()
	if s.Phase == Comparing || s.Phase == Waiting {
		_, s.Theirs = a.Confirmed()
		s.SameName = slices.ContainsFunc(p.node.Friends(), func(f Friend) bool { return f.Name == s.Name && f.ID != s.ID })
	}
	return s
}

// Begin reaches out to a Mac, in the background. While another pairing goes on
// it does nothing.
func (p *Pairings) Begin(id, name string) {
	p.mu.Lock()
	if p.closed || p.state.Phase == Reaching || p.state.Phase == Comparing || p.state.Phase == Waiting {
		p.mu.Unlock()
		return
	}
	ctx, stop := context.WithCancel(p.ctx)
	p.state, p.stop = PairState{Phase: Reaching, ID: id, Name: name}, stop
	p.wg.Add(1)
	p.mu.Unlock()
	p.tell()
	go func() { // Close waits for it
		defer p.wg.Done()
		defer stop()
		a, err := p.node.Pair(ctx, id)
		if err == nil {
			if ctx.Err() != nil { // nobody wants it any more
				a.Refuse()
				return
			}
			p.adopt(a)
			return
		}
		p.mu.Lock()
		if p.state.Phase == Reaching && ctx.Err() == nil {
			p.state.Phase, p.state.Err = NotPaired, err
		}
		p.mu.Unlock()
		p.tell()
	}()
}

func (p *Pairings) nodeChanged() {
	if a := p.node.Pairing(); a != nil {
		p.adopt(a)
	}
	p.tell()
}

// adopt makes an attempt the one to show, and watches its end.
func (p *Pairings) adopt(a Attempt) {
	p.mu.Lock()
	if p.closed || p.attempt == a {
		p.mu.Unlock()
		return
	}
	p.attempt = a
	p.state = PairState{Phase: Comparing, ID: a.ID(), Name: a.Name(), Digits: a.Digits(), Incoming: a.Incoming()}
	p.wg.Add(1)
	p.mu.Unlock()
	p.tell()
	go func() { // Close waits for it
		defer p.wg.Done()
		select {
		case <-a.Done():
		case <-p.ctx.Done():
			return
		}
		err := a.Err()
		p.mu.Lock()
		// What was refused here has been put away.
		if p.attempt == a && (p.state.Phase == Comparing || p.state.Phase == Waiting) {
			p.state.Phase, p.state.Err = Paired, err
			if err != nil {
				p.state.Phase = NotPaired
			}
		}
		p.mu.Unlock()
		if err == nil && !a.Incoming() && p.paired != nil {
			p.paired(a.ID())
		}
		p.tell()
	}()
}

// Confirm says that both screens show the same digits.
func (p *Pairings) Confirm() {
	p.mu.Lock()
	if p.state.Phase != Comparing {
		p.mu.Unlock()
		return
	}
	p.state.Phase = Waiting
	a := p.attempt
	p.mu.Unlock()
	a.Confirm()
	p.tell()
}

// Refuse says that the digits differ, or that the pairing is not wanted, and
// puts away what State shows, also when it is over.
func (p *Pairings) Refuse() {
	p.mu.Lock()
	phase, a, stop := p.state.Phase, p.attempt, p.stop
	p.state = PairState{}
	p.mu.Unlock()
	switch phase {
	case Reaching:
		stop()
	case Comparing, Waiting:
		a.Refuse()
	}
	p.tell()
}

// Friends are the paired Macs, by name.
func (p *Pairings) Friends() []Friend {
	list := p.node.Friends()
	slices.SortFunc(list, func(a, b Friend) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	return list
}

// Remove withdraws the trust in a Mac, in the background.
func (p *Pairings) Remove(id string) { p.change(func() error { return p.node.Forget(id) }) }

// SetConsent says what a Mac's invitations meet, in the background.
func (p *Pairings) SetConsent(id, consent string) {
	p.change(func() error { return p.node.SetConsent(id, consent) })
}

// Err is why the last Remove or SetConsent failed, or nil.
func (p *Pairings) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

func (p *Pairings) change(f func() error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return
	}
	p.wg.Add(1)
	p.mu.Unlock()
	go func() { // Close waits for it
		defer p.wg.Done()
		err := f()
		p.mu.Lock()
		p.err = err
		p.mu.Unlock()
		p.tell()
	}()
}
