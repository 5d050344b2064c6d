package node

import (
	"context"
	"errors"
	"slices"
	"sync"

	"daisy/inference"
	"daisy/node/models"
	"daisy/rdma/heartbeat"
)

// Cluster is nodes with a model loaded over all of them, from this node's side. On
// the leader it goes on, as a new epoch, when a member is lost or leaves; on a
// member it is one epoch, and the next is another Cluster. It ends once, with a
// cause.
type Cluster struct {
	node   *Node
	rank   int
	leader ID
	model  models.Model
	whole  bool // JoinOptions.Whole

	ctx  context.Context // ends when the cluster does, with the cause
	stop context.CancelCauseFunc
	done chan struct{} // all of this node's part has ended

	mu      sync.Mutex  // guards the fields below
	now     *membership // the last that ran; on a member the only one
	without []ID        // of its members, while the cluster pauses
	tickets int         // of readers
	readers []*reader   // whose answers wait to go on
}

func (n *Node) newCluster(rank int, leader ID, model models.Model) *Cluster {
	c := &Cluster{node: n, rank: rank, leader: leader, model: model, done: make(chan struct{})}
	c.ctx, c.stop = context.WithCancelCause(n.ctx)
	return c
}

// end is the last that happens to a cluster. The node is free already.
func (c *Cluster) end(cause error) {
	c.stop(cause)
	close(c.done)
}

func (c *Cluster) current() *membership {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Epoch tells what the cluster is now from all other groups.
func (c *Cluster) Epoch() uint64 { return c.current().epoch }

// Leader is the node that made the cluster and takes requests.
func (c *Cluster) Leader() ID { return c.leader }

// Model is the model that is loaded, as this node's library has it.
func (c *Cluster) Model() models.Model { return c.model }

// Info describes this node's part of the loaded model.
func (c *Cluster) Info() inference.Info { return c.current().engine.Info() }

// Liveness is what the heartbeat knows of the way to each other member, but for
// those that have none; Stats.Rank is the Member's.
func (c *Cluster) Liveness() []heartbeat.Stats {
	if beats := c.current().beats; beats != nil {
		return beats.Stats()
	}
	return nil
}

// Members are the nodes of the cluster by rank, this one included.
func (c *Cluster) Members() []Member {
	c.mu.Lock()
	m, without := c.now, c.without
	c.mu.Unlock()
	m.mu.Lock()
	members := slices.Clone(m.members)
	m.mu.Unlock()
	return slices.DeleteFunc(members, func(m Member) bool { return slices.Contains(without, m.ID) })
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
