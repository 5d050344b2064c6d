package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// ErrNotRejoined: the cluster that was is not there again; the wrapped error or
// Cluster.State says why.
var ErrNotRejoined = errors.New("the cluster is not there again")

// Rejoin begins the cluster that s tells of and blocks until this Mac can ask it:
// it waits until the model is listed and all members can be invited, and joins
// once. When ctx ends earlier it returns ErrNotRejoined and leaves what is under
// way as it is; so it does when joining fails, or when the person does something
// else meanwhile. Without a model in s it returns ErrNoModel.
func (c *Cluster) Rejoin(ctx context.Context, s Standing) error {
	if s.Model == "" {
		return ErrNoModel
	}
	changed := make(chan struct{}, 1)
	cancel := c.Subscribe(func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	defer cancel()
	added, joined := false, false
	for {
		state := c.State()
		switch {
		case c.session.Model() != "":
			return nil
		case joined && state.Phase == Alone:
			return errors.Join(ErrNotRejoined, state.Err)
		case !joined && state.Phase == Alone && s.ready(state):
			for _, p := range state.Peers {
				c.Tick(p.ID, slices.Contains(s.Members, p.ID))
			}
			c.Choose(s.Model)
			c.Join()
			joined = true
			continue
		case !added && !state.Listing && !s.listed(state):
			c.AddFile(s.Model) // it was one from elsewhere
			added = true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ErrNotRejoined, context.Cause(ctx))
		case <-c.ctx.Done():
			return ErrClosed
		}
	}
}

// ready says whether the model and all members are there.
func (s Standing) ready(state ClusterState) bool {
	if !s.listed(state) {
		return false
	}
	for _, id := range s.Members {
		if !slices.ContainsFunc(state.Peers, func(p PeerRow) bool { return p.ID == id && p.Ready }) {
			return false
		}
	}
	return true
}

func (s Standing) listed(state ClusterState) bool {
	return slices.ContainsFunc(state.Models, func(m Model) bool { return m.Path == s.Model })
}
