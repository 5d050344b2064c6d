package pairing

import (
	"cmp"
	"context"
	"time"
)

// Confirm says that the person here found the digits to be the same on both
// screens. Only the first of Confirm and Refuse counts. It does not block.
func (a *Attempt) Confirm() { a.decide(true) }

// Refuse says that the digits differ, or that the pairing is not wanted.
func (a *Attempt) Refuse() { a.decide(false) }

// Enter confirms with the digits that the other screen shows. If they are others
// than this side's, the pairing is refused, and the error is ErrDigits.
func (a *Attempt) Enter(digits string) error {
	if digits != a.Digits {
		a.Refuse()
		return ErrDigits
	}
	a.Confirm()
	return nil
}

func (a *Attempt) decide(yes bool) {
	a.once.Do(func() {
		if yes {
			a.note(&a.confirmed)
		}
		a.decided <- yes
	})
}

// Confirmed says who has confirmed so far.
func (a *Attempt) Confirmed() (here, there bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.confirmed, a.theirs
}

// Watch has changed called, from any goroutine, when Confirmed gives something
// new or the attempt has ended. It must not block.
func (a *Attempt) Watch(changed func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.changed = changed
}

func (a *Attempt) note(flag *bool) {
	a.mu.Lock()
	*flag = true
	changed := a.changed
	a.mu.Unlock()
	if changed != nil {
		changed()
	}
}

// Done is closed when the attempt is over: then Err is nil if the two nodes
// trust each other.
func (a *Attempt) Done() <-chan struct{} { return a.done }

// Err says why there is no trust; nil while the attempt runs.
func (a *Attempt) Err() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// Run waits until both people have confirmed, and calls keep then, which makes
// the trust last; its error is the attempt's. It returns soon after the attempt
// expires or ctx ends, at the latest. Just before Done is closed it calls over
// with why there is no trust, or nil, and returns the same; the channel is
// aborted then, and nothing of the attempt runs any more. It is called once.
func (a *Attempt) Run(ctx context.Context, keep func() error, over func(error)) error {
	quit, reading := make(chan struct{}), make(chan struct{})
	said := make(chan spoken)
	go func() { // awaited below
		defer close(reading)
		for {
			m, err := receive(a.channel)
			select {
			case said <- spoken{m, err}:
			case <-quit:
				return
			}
			if err != nil {
				return
			}
		}
	}()
	err := a.settle(ctx, said)
	if err == nil {
		err = keep()
	}
	if !a.Incoming {
		a.linger(said, reading)
	}
	close(quit)
	a.channel.Abort()
	<-reading
	a.mu.Lock()
	a.err = err
	changed := a.changed
	a.mu.Unlock()
	over(err)
	close(a.done)
	if changed != nil {
		changed()
	}
	return err
}

// spoken is what came over the channel; an error is the last.
type spoken struct {
	message
	err error
}

// settle waits for both people.
func (a *Attempt) settle(ctx context.Context, said <-chan spoken) error {
	timer := time.NewTimer(time.Until(a.Expires))
	defer timer.Stop()
	here, there := false, false
	for !here || !there {
		select {
		case yes := <-a.decided:
			if !yes {
				a.tell(message{End: &end{endRefused}})
				return ErrRefused
			}
			if err := send(a.channel, message{Confirm: &confirm{}}); err != nil {
				select {
				case m := <-said: // it hung up with a word
					return cmp.Or(m.err, err)
				case <-timer.C:
					return err
				}
			}
			here = true
		case m := <-said:
			switch {
			case m.err != nil:
				return m.err
			case m.Confirm == nil || there:
				a.tell(message{End: &end{endClosed}})
				return errTurn
			}
			there = true
			a.note(&a.theirs)
		case <-timer.C:
			a.tell(message{End: &end{endExpired}})
			return ErrExpired
		case <-ctx.Done():
			a.tell(message{End: &end{endClosed}})
			return ErrClosed
		}
	}
	return nil
}

// tell sends a last message, whether it is heard or not.
func (a *Attempt) tell(m message) { _ = send(a.channel, m) }

// linger lets the other side, which hangs up when it is done, read the last
// message. When it has said the last word, reading has ended.
func (a *Attempt) linger(said <-chan spoken, reading <-chan struct{}) {
	timer := time.NewTimer(lingerTime)
	defer timer.Stop()
	for {
		select {
		case m := <-said:
			if m.err != nil {
				return
			}
		case <-reading:
			return
		case <-timer.C:
			return
		}
	}
}
