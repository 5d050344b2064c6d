package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"daisy/inference"
	"daisy/node/control"
	"daisy/node/trust"
)

const (
	inviteTimeout = 10 * time.Second // for the invitation on a new stream
	startTimeout  = 2 * time.Minute  // for the start, beyond the leader's own time
	progressEvery = 250 * time.Millisecond
	maxWithin     = 10 * time.Minute // for the owner's consent
)

// following is a member's side of a membership; the goroutine of the control
// server's callback owns it.
type following struct {
	*membership
	cluster  *Cluster
	stream   *control.Stream
	assembly *assembly
	result   <-chan loaded
	followed <-chan error // how Engine.Follow ended
}

// invited serves one membership, from the invitation to the end; the control
// server calls it.
func (n *Node) invited(ctx context.Context, from ID, stream *control.Stream) {
	timer := time.AfterFunc(inviteTimeout, stream.Abort)
	m, err := stream.Receive()
	timer.Stop()
	if err != nil {
		n.config.Log.Info("no invitation", "from", from.Short(), "error", err)
		var version *control.VersionError
		if errors.As(err, &version) {
			_ = stream.Send(refuse(err)) // whether heard or not, nothing follows
		}
		return
	}
	if err := n.follow(ctx, from, stream, m.Invite); err != nil {
		n.config.Log.Info("invitation refused", "from", from.Short(), "reason", err)
		_ = stream.Send(refuse(err)) // likewise
	}
}

func refuse(reason error) control.Message {
	return control.Message{Answer: &control.Answer{Reason: control.CleanReason(reason.Error())}}
}

// follow returns why the invitation is refused, or nil when the membership is
// over. The stream is not read any more then.
func (n *Node) follow(ctx context.Context, from ID, stream *control.Stream, invite *control.Invite) error {
	if invite == nil {
		return errUnexpected
	}
	self := n.identity.ID()
	rank := slices.IndexFunc(invite.Members, func(m control.Member) bool { return m.ID == self })
	if rank < 1 || invite.Members[0].ID != from {
		return errors.New("the invitation is not for this node")
	}
	// Members that do not know each other take the leader's word for their keys.
	if err := invite.Verify(stream.PeerKey()); err != nil {
		return err
	}
	if e, _ := n.trust.Get(from); e.Consent == trust.Never {
		return errors.New("its owner declines all invitations of this leader")
	}
	if err := n.claim(invite.Members[0].Name); err != nil {
		return err
	}
	model, err := n.config.Models.Find(invite.Model.Fingerprint)
	if err != nil {
		n.release()
		return fmt.Errorf("%w %s", err, invite.Model.Name)
	}
	options := inference.Options{Threads: n.config.Threads, Context: invite.Context, Sequences: invite.Sequences, Cache: inference.CacheType(invite.Cache), SharedCores: n.config.SharedCores}
	c := n.newCluster(rank, from, model)
	f := &following{membership: c.newMembership(invite.Epoch, invite.Members, options), cluster: c, stream: stream}
	c.now = f.membership
	broken := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(broken)
		select {
		case <-f.ctx.Done(): // the leader's last word was read, or it did not matter
		case <-time.After(settleTime):
			f.stop(f.blame(0, ErrLost, errors.New("the connection broke")))
		}
	})
	defer func() {
		if !stop() {
			<-broken
		}
	}()
	over := make(chan struct{})
	reading := make(chan struct{})
	go func() { // awaited below
		defer close(reading)
		f.read(over)
	}()
	refusal := f.run(invite)
	cause := context.Cause(f.ctx)
	if refusal == nil {
		n.keepConsent(invite, cause)
	}
	n.release()
	c.end(cause)
	n.config.Log.Info("membership ended", "epoch", f.epoch, "cause", cause)
	close(over)
	stream.Abort()
	<-reading
	return refusal
}

// read passes on what the leader says; the last event is always an error.
func (f *following) read(over <-chan struct{}) {
	for {
		m, err := f.stream.Receive()
		select {
		case f.events <- memberEvent{message: m, err: err}:
		case <-over:
			return
		}
		if err != nil {
			return
		}
	}
}

// run follows from the invitation to the end; a refusal is still to be sent.
func (f *following) run(invite *control.Invite) (refusal error) {
	leader := f.invited[0].ID
	within := time.Duration(min(invite.WithinMS, maxWithin.Milliseconds())) * time.Millisecond
	if e, _ := f.node.trust.Get(leader); !f.node.hasConsent(invite) && e.Consent != trust.Always {
		if err := f.ask(within); err != nil {
			f.stop(err)
			return err
		}
	}
	if err := f.node.admit(leader); err != nil { // forgotten meanwhile
		f.stop(err)
		return err
	}
	if f.ctx.Err() != nil {
		return nil // nobody waits for the answer any more
	}
	f.assembly = f.node.expect(f.epoch, f.rank, f.invited)
	defer f.assembly.forget()
	if err := f.stream.Send(control.Message{Answer: &control.Answer{Accept: true, BeatPort: f.assembly.beat.port}}); err != nil {
		f.stop(f.blame(0, ErrLost, err))
	}
	f.serve(time.NewTimer(within + startTimeout))
	f.part()
	return nil
}

// ask gets the owner's consent. An error is a refusal; when the leader gives up
// first, the cluster's end says so.
func (f *following) ask(within time.Duration) error {
	ctx, cancel := context.WithTimeout(f.ctx, within)
	defer cancel()
	inv := Invitation{
		Leader: Peer{ID: f.invited[0].ID, Name: f.invited[0].Name}, Model: f.model.Name, ModelBytes: f.model.Bytes,
		Epoch: f.epoch,
	}
	if known, ok := f.node.peers.find(inv.Leader.ID); ok {
		inv.Leader = known
	}
	for _, m := range f.invited {
		inv.Nodes = append(inv.Nodes, m.Name)
	}
	answer := make(chan bool)
	go func() { answer <- f.node.config.Consent(ctx, inv) }() // awaited below
	for {
		select {
		case e := <-f.events:
			f.stop(f.causeOfEvent(e)) // which ends ctx too
		case yes := <-answer:
			switch {
			case f.ctx.Err() != nil:
				return nil
			case ctx.Err() != nil: // whatever is said now
				return errors.New("nobody answered in time")
			case yes:
				return nil
			}
			return errors.New("its owner declined")
		}
	}
}

// serve connects, loads and computes until the cluster ends.
func (f *following) serve(start *time.Timer) {
	defer start.Stop()
	ticker := time.NewTicker(progressEvery)
	defer ticker.Stop()
	for {
		select {
		case <-f.ctx.Done():
			return
		case e := <-f.events:
			switch {
			case e.message.Start != nil && f.result == nil && f.engine == nil:
				start.Stop()
				f.result = f.load(f.assembly, e.message.Start.BeatPorts)
			case e.message.Running != nil && f.engine != nil:
				f.setWeights(e.message.Running.WeightBytes)
				f.node.publish(f.cluster)
			default:
				f.stop(f.causeOfEvent(e))
			}
		case r := <-f.result:
			f.result = nil
			if r.err != nil {
				f.stop(f.settle(r.err))
				return
			}
			f.take(r)
			f.begin()
		case e := <-f.lost:
			f.stop(f.settle(e))
		case err := <-f.followed:
			f.followed = nil
			f.stop(f.settle(err))
		case <-ticker.C:
			if f.result != nil {
				f.report()
			}
		case <-start.C:
			f.stop(f.blame(0, ErrLost, errors.New("it did not start the cluster in time")))
		}
	}
}

// begin follows with a loaded engine and tells the leader so.
func (f *following) begin() {
	engine := f.engine
	followed := make(chan error, 1)
	go func() { followed <- engine.Follow(context.Background()) }() // part waits for it; closing the engine ends it
	f.followed = followed
	ready := control.Message{Ready: &control.Ready{WeightBytes: engine.Info().WeightBytes}}
	if err := f.stream.Send(ready); err != nil {
		f.stop(f.blame(0, ErrLost, err))
	}
}

// report sends how far loading is; a failure shows on the stream anyhow.
func (f *following) report() {
	f.mu.Lock()
	p := f.progress[f.rank]
	f.mu.Unlock()
	_ = f.stream.Send(control.Message{Progress: &p})
}

// settle turns how the engine ended into the cause. The leader knows more, and
// says it within a moment.
func (f *following) settle(err error) error {
	cause := f.blame(0, ErrEnded, nil)
	if err != nil {
		cause = f.explain(err)
	}
	var about *NodeError
	if !errors.As(cause, &about) {
		return cause // of our own making
	}
	if silent(cause) && about.ID == f.invited[0].ID {
		return cause // the leader says nothing more
	}
	timer := time.NewTimer(settleTime)
	defer timer.Stop()
	for {
		select {
		case e := <-f.events:
			if e.err != nil || e.message.End != nil {
				return f.causeOfEvent(e)
			}
		case e := <-f.lost:
			if e.Rank == 0 {
				return f.explain(e)
			}
		case <-timer.C:
			return cause
		case <-f.ctx.Done():
			return context.Cause(f.ctx)
		}
	}
}

// part tells the leader, unless it told us, and ends the engine. When this node
// leaves, it computes on until the leader has heard so: then nobody takes the
// leaving for a loss.
func (f *following) part() {
	cause := context.Cause(f.ctx)
	var about *NodeError
	if !errors.As(cause, &about) || about.ID != f.invited[0].ID {
		if f.stream.Send(f.endMessage(cause)) == nil && errors.Is(cause, ErrClosed) {
			f.awaitEnd()
		}
	}
	f.unload(f.result)
	if f.followed != nil {
		<-f.followed
	}
}

// awaitEnd waits a moment for the leader to end the cluster.
func (f *following) awaitEnd() {
	timer := time.NewTimer(settleTime)
	defer timer.Stop()
	for {
		select {
		case e := <-f.events:
			if e.err != nil || e.message.End != nil {
				return
			}
		case <-timer.C:
			return
		}
	}
}

func (f *following) causeOfEvent(e memberEvent) error {
	switch {
	case e.message.End != nil:
		return f.causeOf(0, e.message.End)
	case errors.Is(e.err, io.EOF):
		return f.blame(0, ErrLost, errors.New("it hung up"))
	case e.err != nil:
		return f.blame(0, ErrLost, e.err)
	}
	return f.blame(0, ErrFailed, errUnexpected)
}
