package verbs

import (
	"fmt"
	"time"
)

// parting is how long a control call may still take once the group has ended.
const parting = 200 * time.Millisecond

// A caller makes control calls that may block in the driver, for a minute or
// for ever, on a goroutine of its own. When a call has not returned in time the
// device is given up: the call cannot be taken back, so it keeps the goroutine,
// which frees what was abandoned once it returns. Until then close waits for
// the goroutine, after that Host.Close does.
//
// One goroutine at a time uses a caller.
type caller struct {
	device *device
	work   chan func() error
	done   chan error
	given  chan struct{} // closed when the device is given up
	timer  *time.Timer
	stuck  bool
}

func newCaller(d *device) *caller {
	c := &caller{device: d, work: make(chan func() error), done: make(chan error),
		given: make(chan struct{}), timer: time.NewTimer(0)}
	go func() {
		defer close(c.done)
		for call := range c.work {
			err := call()
			select {
			case c.done <- err:
			case <-c.given:
				d.cleanUp()
				return
			}
		}
	}()
	return c
}

// do makes a call and waits for it, at most so long, and not much longer than
// quit stays open.
func (c *caller) do(limit time.Duration, quit <-chan struct{}, what string, call func() error) error {
	if c.stuck {
		return c.device.usable()
	}
	if err := c.device.usable(); err != nil {
		return err
	}
	c.work <- call
	c.timer.Reset(limit)
	select {
	case err := <-c.done:
		return err
	case <-c.timer.C:
	case <-quit:
		limit = parting
		c.timer.Reset(limit)
		select {
		case err := <-c.done:
			return err
		case <-c.timer.C:
		}
	}
	c.stuck = true
	err := c.device.giveUp(fmt.Errorf("the driver did not %s within %v: this process uses the device no more", what, limit))
	close(c.given)
	return err
}

// close ends the goroutine. It does not wait for a driver that hangs.
func (c *caller) close() {
	c.timer.Stop()
	close(c.work)
	if !c.stuck {
		<-c.done
	}
}
