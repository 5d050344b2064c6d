package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"daisy/inference"
	"daisy/node/control"
)

const (
	// againWithin is how long members have to answer when a cluster goes on: they
	// have consented before, and nobody is asked.
	againWithin = 10 * time.Second
	// A cluster that could not go on so often in that time ends.
	maxFailures  = 2
	failuresTime = 30 * time.Second
)

// lead leads from the invitations to the cluster's end. joined is told once, after
// everything is undone if it did not come about.
func (c *Cluster) lead(l *leading, joined chan<- error) {
	cause := l.gather()
	came := cause == nil
	if came {
		c.adopt(l.membership)
		c.node.publish(c)
		joined <- nil
		cause = c.reign(l)
	} else {
		cause = l.quit(cause)
	}
	c.node.release()
	c.end(cause)
	if !came {
		joined <- cause
	}
}

// quit ends an epoch that did not come about, and returns the cause.
func (l *leading) quit(err error) error {
	l.stop(err)
	l.part()
	return context.Cause(l.ctx)
}

// reign watches the cluster through its epochs, and returns why it ended.
func (c *Cluster) reign(l *leading) error {
	var failures []time.Time
	for {
		l.reign()
		cause := context.Cause(l.ctx)
		rest := l.replan(cause)
		if c.whole {
			rest = nil
		}
		if rest != nil {
			c.pause(l, rest, cause)
		}
		l.part()
		if l.term > 0 && time.Since(l.begun) < failuresTime {
			failures = append(failures, time.Now())
		}
		next, err := c.begin(l, rest, cause, failures)
		if err != nil {
			return err
		}
		l = next
	}
}

// begin makes the next epoch of the rest, or of fewer when some of those cannot. An
// error is what ends the cluster.
func (c *Cluster) begin(l *leading, rest []control.Member, cause error, failures []time.Time) (*leading, error) {
	lost := cause
	for rest != nil && c.ctx.Err() == nil {
		failures = slices.DeleteFunc(failures, func(t time.Time) bool { return time.Since(t) > failuresTime })
		if len(failures) >= maxFailures {
			break
		}
		next := c.newLeading(rest, l.options, againWithin)
		next.term, next.begun = l.term+1, time.Now()
		if cause = next.gather(); cause == nil {
			c.adopt(next.membership)
			c.node.publish(c)
			c.node.events.emit(Continued{Epoch: next.epoch, Nodes: len(rest), Cause: lost})
			return next, nil
		}
		cause = next.quit(cause)
		c.node.config.Log.Warn("the cluster could not go on", "epoch", next.epoch, "cause", cause)
		failures = append(failures, time.Now())
		rest = next.replan(cause)
	}
	switch {
	case c.ctx.Err() != nil:
		return nil, context.Cause(c.ctx)
	case cause != lost: // the loss is what people know of
		return nil, fmt.Errorf("%w; going on failed: %w", lost, cause)
	}
	return nil, lost
}

// replan says who computes on after an epoch ended, by rank: without the node that
// was lost, left or failed, and this node alone when the rest has no memory for the
// model. The engine shares each layer among them. Nil means that no others would
// help.
func (l *leading) replan(cause error) []control.Member {
	var about *NodeError
	switch {
	case errors.Is(cause, ErrClosed) || len(l.invited) == 1:
		return nil
	case errors.As(cause, &about):
		if about.ID == l.invited[0].ID {
			return nil
		}
		return slices.DeleteFunc(slices.Clone(l.invited), func(m control.Member) bool { return m.ID == about.ID })
	case errors.Is(cause, inference.ErrNoMemory) && l.term > 0:
		return l.invited[:1]
	}
	return nil
}

// pause tells the app that the cluster is about to go on with the rest.
func (c *Cluster) pause(l *leading, rest []control.Member, cause error) {
	c.mu.Lock()
	for _, m := range l.invited {
		if !slices.Contains(ids(rest), m.ID) {
			c.without = append(c.without, m.ID)
		}
	}
	c.mu.Unlock()
	c.node.config.Log.Info("the cluster pauses", "epoch", l.epoch, "cause", cause, "rest", len(rest))
	c.node.events.emit(Paused{Epoch: l.epoch, Nodes: len(rest), Cause: cause})
	c.node.events.emit(PeersChanged{})
}

func ids(members []control.Member) (list []ID) {
	for _, m := range members {
		list = append(list, m.ID)
	}
	return list
}
