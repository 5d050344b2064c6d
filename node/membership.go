package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"daisy/inference"
	"daisy/node/control"
	"daisy/node/models"
	"daisy/rdma"
	"daisy/rdma/heartbeat"
)

// Cluster is a group of nodes with a model loaded over all of them, from this
// node's side. It ends once, on every node, with a cause, and is not repaired.
type Cluster struct {
	node    *Node
	epoch   uint64
	rank    int
	model   models.Model
	invited []control.Member // by rank
	options inference.Options
	events  chan memberEvent         // to the goroutine that owns the membership
	lost    chan *rdma.PeerLostError // likewise: ranks that fell silent

	ctx  context.Context // ends when the cluster does, with the cause
	stop context.CancelCauseFunc

	engine *inference.Engine  // set before the cluster is published
	group  *rdma.Group        // the engine's; nil for a cluster of one
	beats  *heartbeat.Monitor // nil when no other rank has a heartbeat
	done   chan struct{}      // all of this node's part has ended

	mu         sync.Mutex // guards the fields below
	members    []Member
	progress   []control.Progress // by rank
	waitingFor []string           // names of those that still load
}

// Member is one node of a cluster.
type Member struct {
	ID          ID
	Name        string
	Rank        int
	WeightBytes int64 // of its shard
}

// memberEvent is something that came on a membership's stream, or its end.
type memberEvent struct {
	rank    int
	message control.Message
	err     error
}

// errLeft is the cause when this node's owner ended its part.
var errLeft = fmt.Errorf("the cluster was %w", ErrClosed)

func (n *Node) newCluster(epoch uint64, rank int, members []control.Member, model models.Model, options inference.Options) *Cluster {
	c := &Cluster{
		node: n, epoch: epoch, rank: rank, model: model, invited: members, options: options,
		events: make(chan memberEvent), lost: make(chan *rdma.PeerLostError, len(members)), done: make(chan struct{}), progress: make([]control.Progress, len(members)),
	}
	for r, m := range members {
		c.members = append(c.members, Member{ID: m.ID, Name: m.Name, Rank: r})
	}
	c.ctx, c.stop = context.WithCancelCause(n.ctx)
	c.options.Progress = func(loaded, total int64) { c.progressed(rank, control.Progress{Loaded: loaded, Total: total}) }
	return c
}

// Epoch tells this cluster from all others.
func (c *Cluster) Epoch() uint64 { return c.epoch }

// Leader is the node that made the cluster and takes requests.
func (c *Cluster) Leader() ID { return c.invited[0].ID }

// Model is the model that is loaded, as this node's library has it.
func (c *Cluster) Model() models.Model { return c.model }

// Info describes this node's part of the loaded model.
func (c *Cluster) Info() inference.Info { return c.engine.Info() }

// Liveness is what the heartbeat knows of the way to each other member, but for
// those that have none; Stats.Rank is the Member's.
func (c *Cluster) Liveness() []heartbeat.Stats {
	if c.beats == nil {
		return nil
	}
	return c.beats.Stats()
}

// Members are the nodes of the cluster by rank, this one included.
func (c *Cluster) Members() []Member {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.members)
}

// Done is closed when this node's part of the cluster has ended and it can join
// another.
func (c *Cluster) Done() <-chan struct{} { return c.done }

// Err says why the cluster ended: nil while it runs and when this node's own
// side ended it, else a *NodeError that names the node, or what failed here.
func (c *Cluster) Err() error {
	select {
	case <-c.done:
	default:
		return nil
	}
	if cause := context.Cause(c.ctx); !errors.Is(cause, ErrClosed) {
		return cause
	}
	return nil
}

// Close leaves the cluster and waits until this node's part has ended, for some
// seconds at the most. On the leader that ends the cluster for all. It may be
// called more than once.
func (c *Cluster) Close() error {
	c.stop(errLeft)
	<-c.done
	return nil
}

// Leave is Close.
func (c *Cluster) Leave() error { return c.Close() }

// Chat answers a request; see inference.Engine.Chat for how it blocks and
// streams. When the cluster ends meanwhile, what was emitted stands, and the
// error is a *NodeError that names the node at fault, if one is.
func (c *Cluster) Chat(ctx context.Context, req inference.Request, emit func(inference.Delta)) (inference.Stats, error) {
	if c.rank != 0 {
		return inference.Stats{}, ErrNotLeader
	}
	if c.ctx.Err() != nil {
		return inference.Stats{}, context.Cause(c.ctx)
	}
	stats, err := c.engine.Chat(ctx, req, emit)
	if err != nil && ctx.Err() == nil {
		if c.ctx.Err() != nil {
			err = context.Cause(c.ctx) // the engine saw only the consequences
		} else {
			err = c.explain(err)
		}
	}
	return stats, err
}

// explain puts a node's name to an engine's error about a rank.
func (c *Cluster) explain(err error) error {
	var lost *rdma.PeerLostError
	var remote *rdma.RemoteError
	switch {
	case errors.As(err, &lost) && lost.Rank >= 0 && lost.Rank < len(c.invited):
		return c.blame(lost.Rank, ErrLost, lost.Cause)
	case errors.As(err, &remote) && remote.Rank >= 0 && remote.Rank < len(c.invited) && remote.Rank != c.rank:
		return c.blame(remote.Rank, ErrFailed, errors.New(control.CleanReason(remote.Reason)))
	}
	return err
}

func (c *Cluster) blame(rank int, what, reason error) error {
	m := c.invited[rank]
	return &NodeError{ID: m.ID, Name: m.Name, What: what, Reason: reason}
}

// endMessage is what the other side is told of the cause.
func (c *Cluster) endMessage(cause error) control.Message {
	end := &control.End{Kind: control.EndFailed, Reason: control.CleanReason(cause.Error())}
	var about *NodeError
	switch {
	case errors.Is(cause, ErrClosed) && c.rank == 0:
		end.Kind = control.EndClosed
	case errors.Is(cause, ErrClosed):
		end.Kind, end.Node = control.EndLeft, c.invited[c.rank].ID
	case errors.As(cause, &about) && c.rank == 0:
		end.Node = about.ID
		if about.Reason != nil {
			end.Reason = control.CleanReason(about.Reason.Error())
		} else {
			end.Reason = ""
		}
		switch about.What {
		case ErrLost:
			end.Kind = control.EndLost
		case ErrLeft:
			end.Kind = control.EndLeft
		}
	default:
		end.Node = c.invited[c.rank].ID
	}
	return control.Message{End: end}
}

// causeOf is what an end message from a rank means here.
func (c *Cluster) causeOf(rank int, end *control.End) error {
	about := rank // a member speaks for itself alone
	if rank == 0 {
		about = max(0, slices.IndexFunc(c.invited, func(m control.Member) bool { return m.ID == end.Node }))
	}
	var reason error
	if end.Reason != "" {
		reason = errors.New(end.Reason)
	}
	switch end.Kind {
	case control.EndClosed:
		return c.blame(0, ErrEnded, nil)
	case control.EndLeft:
		return c.blame(about, ErrLeft, nil)
	case control.EndLost:
		return c.blame(about, ErrLost, reason)
	}
	return c.blame(about, ErrFailed, reason)
}

// progressed notes how far a rank has loaded.
func (c *Cluster) progressed(rank int, p control.Progress) {
	c.mu.Lock()
	c.progress[rank] = p
	c.mu.Unlock()
	c.emitLoading()
}

// announceLoading emits how far loading is, and who is not done.
func (c *Cluster) announceLoading(waiting []string) {
	c.mu.Lock()
	c.waitingFor = waiting
	c.mu.Unlock()
	c.emitLoading()
}

func (c *Cluster) emitLoading() {
	c.mu.Lock()
	event := Progress{Epoch: c.epoch, Stage: StageLoading, Waiting: c.waitingFor}
	for _, p := range c.progress {
		event.Loaded += p.Loaded
		event.Total += p.Total
	}
	c.mu.Unlock()
	c.node.events.emit(event)
}

// loaded is how the loading of this node's shard ended.
type loaded struct {
	engine *inference.Engine
	connected
	err error
}

// load connects the ranks and loads this one's shard. The goroutine that does
// it is awaited through the channel, which yields exactly once.
func (c *Cluster) load(a *assembly, beatPorts []uint16) <-chan loaded {
	result := make(chan loaded, 1)
	go func() { // awaited by whoever reads result
		result <- c.loadShard(a, beatPorts)
	}()
	return result
}

func (c *Cluster) loadShard(a *assembly, beatPorts []uint16) (l loaded) {
	options := c.options
	if a != nil {
		// There is room for each rank once, and none is reported twice.
		l.connected, l.err = a.connect(c.ctx, beatPorts, func(e *rdma.PeerLostError) { c.lost <- e })
		if l.err != nil {
			return l
		}
		options = joined(options, l.group, l.shared)
	}
	l.engine, l.err = inference.Load(c.ctx, c.model.Path, options)
	if l.err != nil && l.beats != nil {
		l.beats.Close()
	}
	return l
}

// joined adds the group to the engine's options. Cores are shared when the owner
// says so, too: ranks on one machine may meet at different addresses.
func joined(options inference.Options, group *rdma.Group, shared bool) inference.Options {
	options.Group = group
	options.SharedCores = options.SharedCores || shared
	return options
}

// take keeps what was loaded.
func (c *Cluster) take(l loaded) { c.engine, c.group, c.beats = l.engine, l.group, l.beats }

// silent says whether a cause is that a heartbeat stopped: then the node has
// nothing to say any more.
func silent(cause error) bool {
	var silence *heartbeat.SilenceError
	return errors.As(cause, &silence)
}

// unload ends the engine, and waits: for a step that is running, but not for a
// rank that will never answer.
func (c *Cluster) unload(result <-chan loaded) {
	if result != nil {
		r := <-result // the cluster's end cancels the loading
		c.take(r)
	}
	if c.engine == nil {
		return
	}
	if c.beats != nil {
		defer c.beats.Close() // last: until then this node lives
	}
	if c.group != nil {
		cause := context.Cause(c.ctx)
		if errors.Is(cause, ErrClosed) {
			defer time.AfterFunc(partingTime, func() { c.group.Abort(cause) }).Stop()
		} else {
			c.group.Abort(cause)
		}
	}
	c.engine.Close()
}

// setWeights notes what each rank holds.
func (c *Cluster) setWeights(bytes []int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for r := range c.members {
		if r < len(bytes) {
			c.members[r].WeightBytes = bytes[r]
		}
	}
}
