package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Join begins a cluster of this Mac and the ticked peers with the chosen model,
// in the background; State tells how it goes. Without ticks this Mac works
// alone. It does nothing while there is a cluster already.
func (c *Cluster) Join() {
	peers := c.node.Peers()
	c.mu.Lock()
	if c.closed || c.phase != Alone {
		c.mu.Unlock()
		return
	}
	at := slices.IndexFunc(c.models, func(m Model) bool { return m.Path == c.chosen })
	if at < 0 {
		c.err = ErrNoModel
		c.mu.Unlock()
		c.tell()
		return
	}
	model := c.models[at]
	var members []string
	for _, p := range peers {
		if c.ticked[p.ID] && p.Ready {
			members = append(members, p.ID)
		}
	}
	ctx, stop := context.WithCancel(c.ctx)
	c.phase, c.stop, c.err, c.progress = Joining, stop, nil, Progress{}
	c.wg.Add(1)
	c.mu.Unlock()
	c.tell()

	go func() { // Close waits for it
		defer c.wg.Done()
		defer stop()
		group, err := c.node.Join(ctx, members, model)
		if err == nil {
			c.enter(group)
			return
		}
		c.mu.Lock()
		if c.phase == Joining || c.phase == Leaving {
			c.phase = Alone
		}
		if ctx.Err() == nil {
			c.err = fmt.Errorf("joining the cluster: %w", err)
		}
		c.mu.Unlock()
		c.tell()
	}()
}

// Leave ends the cluster this Mac is in, or the attempt to join one. It does
// not wait.
func (c *Cluster) Leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.phase == Alone || c.phase == Leaving {
		return
	}
	joining := c.phase == Joining
	c.phase = Leaving
	if joining {
		c.stop()
	}
	group := c.group
	c.wg.Add(1)
	go func() { // Close waits for it
		defer c.wg.Done()
		c.tell()
		if group != nil {
			if err := group.Close(); err != nil {
				c.left(group, err)
				return
			}
			c.left(group, errLeft)
		}
	}()
}

// enter makes the group the one to show and to ask, and watches its end.
func (c *Cluster) enter(group Group) {
	self := c.node.Self().ID
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		group.Close()
		return
	}
	if c.group != nil && c.group.Epoch() == group.Epoch() {
		c.mu.Unlock()
		return
	}
	leaving := c.phase == Leaving
	c.group, c.phase, c.err, c.progress = group, Joined, nil, Progress{}
	c.wg.Add(1)
	c.mu.Unlock()
	if group.Leader() == self {
		c.session.Use(group, group.Model())
	} else {
		c.session.Use(nil, "")
	}
	go func() { // Close waits for it
		defer c.wg.Done()
		select {
		case <-group.Done():
			c.left(group, group.Err())
		case <-c.ctx.Done():
		}
	}()
	c.tell()
	if leaving { // asked to leave while the last step of joining ran
		c.Leave()
	}
}

// left notes the end of a group once.
func (c *Cluster) left(group Group, err error) {
	c.mu.Lock()
	if c.group == nil || c.group.Epoch() != group.Epoch() {
		c.mu.Unlock()
		return
	}
	wanted := c.phase == Leaving
	c.group, c.phase, c.lastEpoch = nil, Alone, group.Epoch()
	if err != nil && !errors.Is(err, errLeft) && !wanted {
		c.err = fmt.Errorf("the cluster ended: %w", err)
	}
	c.mu.Unlock()
	c.session.Use(nil, "")
	c.tell()
}
