package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"daisy/node/pairing"
)

// pairOnceTime is how long --pair-once is open.
const pairOnceTime = 10 * time.Minute

// decider is how a node without a screen confirms the pairings that others
// begin: with once the first without asking, the others by the terminal; where
// nobody answers there, daisy pair does in another.
func decider(once bool, t *terminal) func(context.Context, *pairing.Attempt) {
	var spent atomic.Bool
	spent.Store(!once)
	begun := time.Now()
	return func(ctx context.Context, a *pairing.Attempt) {
		if time.Since(begun) < pairOnceTime && spent.CompareAndSwap(false, true) {
			a.Confirm()
			return
		}
		t.compare(ctx, a)
	}
}

// compare asks whether the digits are the same, until that is settled in one way
// or another. No answer is none: the pairing expires, or daisy pair settles it.
func (t *terminal) compare(ctx context.Context, a *pairing.Attempt) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	watching := make(chan struct{})
	go func() { // awaited below
		defer close(watching)
		select {
		case <-a.Done():
			cancel()
		case <-ctx.Done():
		}
	}()
	defer func() {
		cancel()
		<-watching
	}()
	answer := t.open()
	fmt.Fprintf(t.out, "Does the screen of %s show %s %s, too? [y/N] ", a.PeerName, a.Digits[:3], a.Digits[3:])
	line, ok := t.wait(ctx, answer)
	switch {
	case !ok:
		fmt.Fprintln(t.out)
	case saysYes(line):
		a.Confirm()
	case line != "":
		a.Refuse()
	}
}
