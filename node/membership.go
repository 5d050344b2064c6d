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

// membership is one epoch of a cluster, from this node's side: a group of nodes with
// a model loaded over all of them. It ends once, on every node, with a cause, and is
// not repaired: the leader may begin another.
type membership struct {
	node    *Node
	epoch   uint64
	term    int // how many the leader's cluster had before
	begun   time.Time
	rank    int
	model   models.Model
	invited []control.Member // by rank
	options inference.Options
	events  chan memberEvent         // to the goroutine that owns the membership
	lost    chan *rdma.PeerLostError // likewise: ranks that fell silent

	ctx  context.Context // ends when the epoch does, with the cause
	stop context.CancelCauseFunc

	engine *inference.Engine  // set before the membership is the cluster's
	group  *rdma.Group        // the engine's; nil for a cluster of one
	beats  *heartbeat.Monitor // nil when no other rank has a heartbeat

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

func (c *Cluster) newMembership(epoch uint64, members []control.Member, options inference.Options) *membership {
	rank := c.rank
	m := &membership{
		node: c.node, epoch: epoch, rank: rank, model: c.model, invited: members, options: options,
		events: make(chan memberEvent), lost: make(chan *rdma.PeerLostError, len(members)), progress: make([]control.Progress, len(members)),
	}
	for r, other := range members {
		m.members = append(m.members, Member{ID: other.ID, Name: other.Name, Rank: r})
	}
	m.ctx, m.stop = context.WithCancelCause(c.ctx)
	m.options.Progress = func(loaded, total int64) { m.progressed(rank, control.Progress{Loaded: loaded, Total: total}) }
	return m
}

// explain puts a node's name to an engine's error about a rank.
func (m *membership) explain(err error) error {
	var lost *rdma.PeerLostError
	var remote *rdma.RemoteError
	switch {
	case errors.As(err, &lost) && lost.Rank >= 0 && lost.Rank < len(m.invited):
		return m.blame(lost.Rank, ErrLost, lost.Cause)
	case errors.As(err, &remote) && remote.Rank >= 0 && remote.Rank < len(m.invited) && remote.Rank != m.rank:
		return m.blame(remote.Rank, ErrFailed, errors.New(control.CleanReason(remote.Reason)))
	}
	return err
}

func (m *membership) blame(rank int, what, reason error) error {
	about := m.invited[rank]
	return &NodeError{ID: about.ID, Name: about.Name, What: what, Reason: reason}
}

// endMessage is what the other side is told of the cause.
func (m *membership) endMessage(cause error) control.Message {
	end := &control.End{Kind: control.EndFailed, Reason: control.CleanReason(cause.Error())}
	var about *NodeError
	switch {
	case errors.Is(cause, ErrClosed) && m.rank == 0:
		end.Kind = control.EndClosed
	case errors.Is(cause, ErrClosed):
		end.Kind, end.Node = control.EndLeft, m.invited[m.rank].ID
	case errors.As(cause, &about) && m.rank == 0:
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
		end.Node = m.invited[m.rank].ID
	}
	return control.Message{End: end}
}

// causeOf is what an end message from a rank means here.
func (m *membership) causeOf(rank int, end *control.End) error {
	about := rank // a member speaks for itself alone
	if rank == 0 {
		about = max(0, slices.IndexFunc(m.invited, func(other control.Member) bool { return other.ID == end.Node }))
	}
	var reason error
	if end.Reason != "" {
		reason = errors.New(end.Reason)
	}
	switch end.Kind {
	case control.EndClosed:
		return m.blame(0, ErrEnded, nil)
	case control.EndLeft:
		return m.blame(about, ErrLeft, nil)
	case control.EndLost:
		return m.blame(about, ErrLost, reason)
	}
	return m.blame(about, ErrFailed, reason)
}

// progressed notes how far a rank has loaded.
func (m *membership) progressed(rank int, p control.Progress) {
	m.mu.Lock()
	m.progress[rank] = p
	m.mu.Unlock()
	m.emitLoading()
}

// announceLoading emits how far loading is, and who is not done.
func (m *membership) announceLoading(waiting []string) {
	m.mu.Lock()
	m.waitingFor = waiting
	m.mu.Unlock()
	m.emitLoading()
}

func (m *membership) emitLoading() {
	m.mu.Lock()
	event := Progress{Epoch: m.epoch, Stage: StageLoading, Waiting: m.waitingFor}
	for _, p := range m.progress {
		event.Loaded += p.Loaded
		event.Total += p.Total
	}
	m.mu.Unlock()
	m.node.events.emit(event)
}

// loaded is how the loading of this node's shard ended.
type loaded struct {
	engine *inference.Engine
	connected
	err error
}

// load connects the ranks and loads this one's shard. The goroutine that does
// it is awaited through the channel, which yields exactly once.
func (m *membership) load(a *assembly, beatPorts []uint16) <-chan loaded {
	result := make(chan loaded, 1)
	go func() { // awaited by whoever reads result
		result <- m.loadShard(a, beatPorts)
	}()
	return result
}

func (m *membership) loadShard(a *assembly, beatPorts []uint16) (l loaded) {
	options := m.options
	if a != nil {
		// There is room for each rank once, and none is reported twice.
		l.connected, l.err = a.connect(m.ctx, beatPorts, func(e *rdma.PeerLostError) { m.lost <- e })
		if l.err != nil {
			return l
		}
		options = joined(options, l.group, l.shared)
	}
	l.engine, l.err = inference.Load(m.ctx, m.model.Path, options)
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
func (m *membership) take(l loaded) { m.engine, m.group, m.beats = l.engine, l.group, l.beats }

// silent says whether a cause is that a heartbeat stopped: then the node has
// nothing to say any more.
func silent(cause error) bool {
	var silence *heartbeat.SilenceError
	return errors.As(cause, &silence)
}

// unload ends the engine, and waits: for a step that is running, but not for a
// rank that will never answer.
func (m *membership) unload(result <-chan loaded) {
	if result != nil {
		r := <-result // the cluster's end cancels the loading
		m.take(r)
	}
	if m.engine == nil {
		return
	}
	if m.beats != nil {
		defer m.beats.Close() // last: until then this node lives
	}
	if m.group != nil {
		cause := context.Cause(m.ctx)
		if errors.Is(cause, ErrClosed) {
			defer time.AfterFunc(partingTime, func() { m.group.Abort(cause) }).Stop()
		} else {
			m.group.Abort(cause)
		}
	}
	m.engine.Close()
}

// setWeights notes what each rank holds.
func (m *membership) setWeights(bytes []int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for r := range m.members {
		if r < len(bytes) {
			m.members[r].WeightBytes = bytes[r]
		}
	}
}
