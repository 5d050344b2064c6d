package node

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"sync"
	"time"

	"daisy/inference"
	"daisy/node/control"
	"daisy/node/models"
)

// JoinOptions of a cluster. The zero value is a good one.
type JoinOptions struct {
	// Context is the KV cache's length in positions; 0 is the engine's default.
	Context int
	// Sequences is how many answers are computed at once; 0 is one.
	Sequences int
	// Cache is how all nodes keep keys and values.
	Cache inference.CacheType
	// Threads compute on this node; 0 is the engine's default. The members use
	// their own setting.
	Threads int
	// Whole ends the cluster when a member is lost or leaves, instead of going on
	// without it.
	Whole bool
	// Within is how long the others have to consent; 0 is a minute.
	Within time.Duration
}

const (
	defaultWithin = time.Minute
	maxMembers    = 32
	// partingTime is how long the end of a cluster may take to reach the others.
	partingTime = 2 * time.Second
	// lostPartingTime is the same for one that fell silent.
	lostPartingTime = 300 * time.Millisecond
	// settleTime is how long a broken group waits to hear from its members why.
	settleTime = time.Second
)

// Join makes this node lead a cluster of itself and the members, which may be
// none: it asks them, and if all accept, returns when every one has loaded its
// shard of the model. Ranks are dealt in the order given, this node being 0. When a
// member is lost or leaves later, the cluster goes on without it if it can and may.
//
// It blocks as long as people take to consent and disks to load; cancelling ctx
// gives up. After an error everybody is free again; the error names the node at
// fault and its reason. The caller closes the Cluster, or Node.Close does.
func (n *Node) Join(ctx context.Context, members []ID, model models.Model, opt JoinOptions) (*Cluster, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	invited, err := n.invitees(members)
	if err != nil {
		return nil, err
	}
	if opt.Within <= 0 {
		opt.Within = defaultWithin
	}
	if err := n.claim(n.config.Name); err != nil {
		return nil, err
	}
	options := inference.Options{Threads: opt.Threads, Context: opt.Context, Sequences: opt.Sequences, Cache: opt.Cache, SharedCores: n.config.SharedCores}
	c := n.newCluster(0, n.identity.ID(), model)
	c.whole = opt.Whole
	stop := context.AfterFunc(ctx, func() { c.stop(context.Cause(ctx)) })
	joined := make(chan error, 1)
	go c.lead(c.newLeading(invited, options, opt.Within), joined) // Node.Close waits for it
	err = <-joined
	if err == nil && !stop() { // cancelled at the last moment
		<-c.done
		err = context.Cause(ctx)
	}
	stop()
	if err != nil {
		return nil, err
	}
	return c, nil
}

// invitees are all members of the new cluster by rank.
func (n *Node) invitees(ids []ID) ([]control.Member, error) {
	self := n.Self()
	members := []control.Member{{ID: self.ID, Name: self.Name, Addrs: portable(self.Addrs)}}
	for _, id := range ids {
		if slices.ContainsFunc(members, func(m control.Member) bool { return m.ID == id }) {
			return nil, fmt.Errorf("node %s is chosen twice", id.Short())
		}
		peer, ok := n.peers.find(id)
		if !ok {
			return nil, fmt.Errorf("node %s: %w", id.Short(), ErrUnknownPeer)
		}
		if !n.trust.Has(id) {
			return nil, &NodeError{ID: id, Name: peer.Name, What: ErrNotPaired}
		}
		members = append(members, control.Member{ID: id, Name: peer.Name, Addrs: portable(peer.Addrs)})
	}
	if len(members) > maxMembers {
		return nil, fmt.Errorf("%d nodes are more than the %d of a cluster", len(members), maxMembers)
	}
	return members, nil
}

// portable leaves out the addresses that mean something on this machine only.
func portable(addrs []netip.AddrPort) []netip.AddrPort {
	addrs = slices.DeleteFunc(slices.Clone(addrs), func(a netip.AddrPort) bool { return a.Addr().Zone() != "" })
	return addrs[:min(len(addrs), maxAddrs)]
}

// newEpoch is a number that was never used before, as far as chance allows.
func newEpoch() uint64 {
	var b [8]byte
	for {
		if _, err := rand.Read(b[:]); err != nil {
			panic(err) // crypto/rand.Read never fails
		}
		if epoch := binary.BigEndian.Uint64(b[:]); epoch != 0 {
			return epoch
		}
	}
}

// leading is the leader's side of a membership; the goroutine of run owns it.
type leading struct {
	*membership
	within   time.Duration
	assembly *assembly // nil for a cluster of one
	result   <-chan loaded
	links    sync.WaitGroup
	unlink   context.CancelFunc   // ends every link
	cut      []context.CancelFunc // ends one, by rank
	ports    []uint16             // of the heartbeats, by rank

	mu      sync.Mutex // guards streams
	streams []*control.Stream
}

func (c *Cluster) newLeading(invited []control.Member, options inference.Options, within time.Duration) *leading {
	return &leading{membership: c.newMembership(newEpoch(), invited, options), within: within}
}

// gather invites, starts and loads.
func (l *leading) gather() error {
	world := len(l.invited)
	l.streams = make([]*control.Stream, world)
	l.ports = make([]uint16, world)
	if world > 1 {
		l.assembly = l.node.expect(l.epoch, 0, l.invited)
		l.ports[0] = l.assembly.beat.port
		if err := l.link(); err != nil {
			return err
		}
		if err := l.invite(); err != nil {
			return err
		}
		if err := l.tell(control.Message{Start: &control.Start{Epoch: l.epoch, BeatPorts: l.ports}}); err != nil {
			return err
		}
	}
	l.result = l.load(l.assembly, l.ports)
	weights := make([]int64, world)
	ready := make([]bool, world)
	l.announceLoading(l.waiting(ready))
	for slices.Contains(ready, false) {
		select {
		case r := <-l.result:
			l.result = nil
			if r.err != nil {
				return l.settle(r.err)
			}
			l.take(r)
			ready[0], weights[0] = true, r.engine.Info().WeightBytes
			l.announceLoading(l.waiting(ready))
		case e := <-l.events:
			switch {
			case e.err != nil || e.message.End != nil:
				return l.causeOfEvent(e)
			case e.message.Progress != nil:
				l.progressed(e.rank, *e.message.Progress)
			case e.message.Ready != nil:
				ready[e.rank], weights[e.rank] = true, e.message.Ready.WeightBytes
				l.announceLoading(l.waiting(ready))
			default:
				return l.blame(e.rank, ErrFailed, errUnexpected)
			}
		case e := <-l.lost:
			return l.explain(e)
		case <-l.ctx.Done():
			return context.Cause(l.ctx)
		}
	}
	l.setWeights(weights)
	if world == 1 {
		return nil
	}
	return l.tell(control.Message{Running: &control.Running{WeightBytes: weights}})
}

var errUnexpected = errors.New("it sent a message out of turn")

// invite waits until every member has accepted, or the first has not.
func (l *leading) invite() error {
	accepted := make([]bool, len(l.invited))
	accepted[0] = true
	timer := time.NewTimer(l.within)
	defer timer.Stop()
	for slices.Contains(accepted, false) {
		l.node.events.emit(Progress{Epoch: l.epoch, Stage: StageInviting, Waiting: l.waiting(accepted)})
		select {
		case e := <-l.events:
			switch {
			case e.err != nil:
				return l.blame(e.rank, ErrRefused, unreachable(e.err))
			case e.message.End != nil:
				return l.causeOf(e.rank, e.message.End)
			case e.message.Answer == nil:
				return l.blame(e.rank, ErrFailed, errUnexpected)
			case !e.message.Answer.Accept:
				return l.blame(e.rank, ErrRefused, errors.New(e.message.Answer.Reason))
			}
			accepted[e.rank] = true
			l.ports[e.rank] = e.message.Answer.BeatPort
		case <-timer.C:
			var errs []error
			for r, yes := range accepted {
				if !yes {
					errs = append(errs, l.blame(r, ErrRefused, fmt.Errorf("no answer within %v", l.within)))
				}
			}
			return errors.Join(errs...)
		case <-l.ctx.Done():
			return context.Cause(l.ctx)
		}
	}
	return nil
}

// reign watches until the epoch ends.
func (l *leading) reign() {
	for {
		select {
		case e := <-l.events:
			if e.err != nil || e.message.End != nil {
				l.stop(l.causeOfEvent(e))
			}
		case e := <-l.lost:
			l.stop(l.explain(e))
		case <-l.engine.Done():
			l.stop(l.settle(l.engine.Err()))
		case <-l.ctx.Done():
			return
		}
	}
}

// settle turns an engine's error into the cause. A member that failed or left
// says so on its stream, and says it better than the connection that broke.
func (l *leading) settle(err error) error {
	cause := l.explain(err)
	var about *NodeError
	if !errors.As(cause, &about) {
		return cause
	}
	timer := time.NewTimer(settleTime)
	defer timer.Stop()
	for {
		select {
		case e := <-l.events:
			if e.message.End != nil || e.err != nil && l.invited[e.rank].ID == about.ID {
				return l.causeOfEvent(e)
			}
		case e := <-l.lost: // it says nothing more
			return l.explain(e)
		case <-timer.C:
			return cause
		case <-l.ctx.Done():
			return context.Cause(l.ctx)
		}
	}
}

// part tells everybody the cause, ends the engine, and waits until the members
// are free, as far as they answer.
func (l *leading) part() {
	parted := make(chan struct{})
	cause := context.Cause(l.ctx)
	end := l.endMessage(cause)
	if r := l.rankOf(cause); silent(cause) && r > 0 {
		// It is told, in case it wakes, and not waited for.
		defer time.AfterFunc(lostPartingTime, l.cut[r]).Stop()
	}
	go func() { // awaited below
		defer close(parted)
		_ = l.tell(end) // who does not hear it notices by the stream's end
		l.links.Wait()
	}()
	timer := time.NewTimer(partingTime)
	defer timer.Stop()
	l.unload(l.result)
	for waiting := true; waiting; {
		select {
		case <-l.events: // nothing counts any more
		case <-timer.C:
			if l.unlink != nil {
				l.unlink()
			}
		case <-parted:
			waiting = false
		}
	}
	if l.unlink != nil {
		l.unlink()
	}
	if l.assembly != nil {
		l.assembly.forget()
	}
}

// link opens a stream to each member and sends the invitation. What comes on it
// goes to events; the last is always an error.
func (l *leading) link() error {
	var ctx context.Context
	// Not the cluster's: its end is still to be told.
	ctx, l.unlink = context.WithCancel(context.Background())
	invite := &control.Invite{
		Epoch: l.epoch, Members: l.invited, Context: l.options.Context, Sequences: l.options.Sequences,
		Cache:    int(l.options.Cache),
		WithinMS: l.within.Milliseconds(),
		Model: control.Model{
			Name: l.model.Name, Fingerprint: l.model.Fingerprint, Bytes: l.model.Bytes, Architecture: l.model.Architecture,
		},
	}
	if err := invite.Sign(l.node.identity); err != nil {
		return err
	}
	message := control.Message{Invite: invite}
	l.cut = make([]context.CancelFunc, len(l.invited))
	for r := 1; r < len(l.invited); r++ {
		var own context.Context
		own, l.cut[r] = context.WithCancel(ctx)
		l.links.Go(func() {
			err := l.serveLink(own, r, message)
			l.events <- memberEvent{rank: r, err: err}
		})
	}
	return nil
}

func (l *leading) serveLink(ctx context.Context, rank int, invite control.Message) error {
	dialCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	// Whoever gives up does not wait for a machine that does not answer.
	stop := context.AfterFunc(l.ctx, cancel)
	stream, err := l.node.dialer.Group(dialCtx, l.invited[rank].ID)
	if err != nil {
		stop()
		return err
	}
	defer stream.Abort()
	// The stream's own context does not end a Receive while its other direction
	// is idle.
	defer context.AfterFunc(ctx, stream.Abort)()
	if !stop() {
		return context.Cause(l.ctx)
	}
	l.mu.Lock()
	l.streams[rank] = stream
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		l.streams[rank] = nil
		l.mu.Unlock()
	}()
	if err := stream.Send(invite); err != nil {
		return err
	}
	for {
		m, err := stream.Receive()
		if err != nil {
			return err
		}
		l.events <- memberEvent{rank: rank, message: m}
	}
}

// tell sends m to all members at once.
func (l *leading) tell(m control.Message) error {
	l.mu.Lock()
	streams := slices.Clone(l.streams)
	l.mu.Unlock()
	errs := make([]error, len(streams))
	var sends sync.WaitGroup
	for r, stream := range streams {
		if stream != nil {
			sends.Go(func() {
				if err := stream.Send(m); err != nil {
					errs[r] = l.blame(r, ErrLost, err)
				}
			})
		}
	}
	sends.Wait()
	return errors.Join(errs...)
}

func (l *leading) causeOfEvent(e memberEvent) error {
	if e.message.End != nil {
		return l.causeOf(e.rank, e.message.End)
	}
	if errors.Is(e.err, io.EOF) {
		e.err = errors.New("it hung up")
	}
	return l.blame(e.rank, ErrLost, e.err)
}

// rankOf is the rank of the node that a cause is about, -1 for none.
func (l *leading) rankOf(cause error) int {
	var about *NodeError
	if !errors.As(cause, &about) {
		return -1
	}
	return slices.IndexFunc(l.invited, func(m control.Member) bool { return m.ID == about.ID })
}

// waiting names the nodes that are not done.
func (l *leading) waiting(done []bool) (names []string) {
	for r, ok := range done {
		if !ok {
			names = append(names, l.invited[r].Name)
		}
	}
	return names
}
