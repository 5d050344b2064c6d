package verbs

import (
	"time"

	"daisy/rdma"
	"daisy/rdma/verbs/provider"
)

// farewellLimit is how long Close waits for peers to see what was sent last.
// Those that close too, or are in a call, see it at once; others when they next
// look after their pairs, forty times a second. Tests change it.
var farewellLimit = 250 * time.Millisecond

// delivery is what the last slot of all, which nobody answers, gets to arrive.
// If it does not, the peer's Close takes farewellLimit.
const delivery = 25 * time.Millisecond

// Close implements rdma.Transport. It says bye on every pair, ends the base,
// waits for what is under way, a quarter of a second at the most, and gives the
// queue pairs back. What is left of a device whose driver hangs is given back
// when the driver returns.
func (t *Transport) Close() error {
	t.closeOnce.Do(t.close)
	return nil
}

func (t *Transport) close() {
	orderly := t.Err() == nil
	for _, p := range t.pairs {
		if p != nil {
			p.bye(orderly)
		}
	}
	_ = t.base.Close() // it never fails by its contract, and frees blocked calls
	orderly = orderly && t.Err() == rdma.ErrClosed
	t.wg.Wait()
	limit := provider.DestroyHold
	if orderly {
		limit = farewellLimit
	}
	deadline := time.Now().Add(limit)
	var w waiter
	for waiting, unsure := true, false; waiting; w.pause() {
		waiting = false
		for _, p := range t.pairs { // all of them, since what comes from a peer may not wait for another
			if p != nil && !p.quiet(orderly) {
				waiting = time.Now().Before(deadline)
			}
			unsure = unsure || p != nil && p.rails[0].kind != provider.RC
		}
		if !waiting && orderly && unsure {
			nap(delivery)
		}
	}
	for _, p := range t.pairs {
		if p != nil {
			p.free()
		}
	}
	t.marker.remove()
}

// bye posts the last slot of this direction, unless the group has failed.
// Nothing is sent afterwards.
func (p *pair) bye(orderly bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	deadline := time.Now().Add(provider.DestroyHold / 2)
	for orderly && p.failed == nil && !p.left {
		sent, err := p.control(kindBye)
		if sent || err != nil || time.Now().After(deadline) {
			break
		}
	}
	p.saidBye = true
}

// quiet reports whether the queue pairs can go: all that was sent has left and,
// in an orderly farewell, has arrived. On RC a completion says so; on UC, where
// completions precede delivery, the peer does: by its answer, or by its own
// bye, since a peer that leaves has taken what it wanted.
func (p *pair) quiet(orderly bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, err := p.poll(); err != nil {
		return true
	}
	return p.left || p.sending == 0 && (!orderly || p.seen || p.rails[0].kind == provider.RC)
}

// free waits for calls that are just returning and gives the rails back.
func (p *pair) free() {
	p.sendTurn.Lock()
	defer p.sendTurn.Unlock()
	p.recvTurn.Lock()
	defer p.recvTurn.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, r := range p.rails {
		_ = r.free() // nothing can be done about it, and nobody needs to know
	}
}
