package verbs

import (
	"fmt"
	"slices"
	"time"

	"daisy/rdma/verbs/provider"
)

const (
	// lookEvery is how often a pair is polled that nobody uses, so that news,
	// errors and farewells do not wait for the next call.
	lookEvery = 25 * time.Millisecond
	// portEvery is how often the ports of rails on which nothing has moved are
	// looked at. A pulled cable shows nowhere else.
	portEvery = 100 * time.Millisecond
	// portPatience is how long a driver may take to tell a port's state before
	// it counts as hung. It answers at once in good health.
	portPatience = 5 * time.Second
)

// watchPorts ends the group when a port in use goes down, or its driver hangs.
// Close waits for it.
func (t *Transport) watchPorts(ports []watched) {
	defer func() {
		for _, w := range ports {
			w.caller.close()
		}
	}()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-t.Done():
			return
		case <-tick.C:
		}
		for _, w := range ports {
			if n%int(portEvery/lookEvery) != 0 || t.moved(w.caller.device) {
				continue // when something has moved, the cable is in
			}
			if err := w.active(t.Done()); err != nil {
				t.lose(w.caller.device, err)
			}
		}
		for _, p := range t.pairs {
			if p == nil {
				continue
			}
			if err := p.tick(); err != nil {
				t.base.Abort(err)
			}
		}
		if n%int(touchEvery/lookEvery) == 0 {
			t.marker.touch()
		}
	}
}

// ports lists the ports of the transport's rails, each once, ready to be
// watched.
func (t *Transport) ports() (ports []watched) {
	for _, p := range t.pairs {
		if p == nil {
			continue
		}
		for _, r := range p.rails {
			if !slices.ContainsFunc(ports, func(w watched) bool { return w.caller.device == r.device }) {
				ports = append(ports, watch(r.device))
			}
		}
	}
	return ports
}

// moved reports whether anything has completed on a device since the last time.
func (t *Transport) moved(d *device) (moved bool) {
	for _, p := range t.pairs {
		if p == nil {
			continue
		}
		p.mu.Lock()
		for _, r := range p.rails {
			if r.device == d && r.completed != r.looked {
				r.looked = r.completed
				moved = true
			}
		}
		p.mu.Unlock()
	}
	return moved
}

// lose ends the group because of a device, unless the peers behind it have
// left anyway.
func (t *Transport) lose(d *device, err error) {
	for _, p := range t.pairs {
		if p == nil || p.hasLeft() {
			continue
		}
		for _, r := range p.rails {
			if r.device == d {
				t.base.Abort(&LinkError{Peer: p.peer, Device: d.name, Cause: err})
			}
		}
	}
}

// idleTicks is after how many looks at a pair on which nothing was sent
// something is sent, because idle queue pairs may not stay usable.
const idleTicks = int(provider.IdleTraffic / lookEvery)

// tick looks after a pair that nobody polls for a long time: it notices errors
// and keeps the queue pairs in use.
func (p *pair) tick() error {
	if !p.mu.TryLock() {
		return nil // it is in use
	}
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	if _, err := p.poll(); err != nil {
		if err == p.lost {
			return nil // whoever needs the peer finds out
		}
		return err
	}
	if p.posts != p.ticked {
		p.ticked, p.ticks = p.posts, 0
		return nil
	}
	if p.ticks++; p.ticks < idleTicks || p.sending > 0 || p.left || p.saidBye {
		return nil
	}
	_, err := p.control(kindCredit) // if there is no room, something is under way
	return err
}

func (p *pair) hasLeft() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.left
}

// watched is a port whose state is asked for again and again.
type watched struct {
	caller *caller
	ask    func() error
	state  *provider.PortState
}

func watch(d *device) watched {
	state := new(provider.PortState)
	return watched{newCaller(d), func() error {
		a, err := d.ctx.QueryPort(port)
		*state = a.State
		return err
	}, state}
}

// active reports why the port is not in use any more.
func (w watched) active(quit <-chan struct{}) error {
	err := w.caller.do(portPatience, quit, "tell the state of its port", w.ask)
	if err == nil && *w.state != provider.PortActive {
		err = fmt.Errorf("%v: %w", *w.state, provider.ErrPortDown)
	}
	return err
}
