package session

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// Peer is another Mac as a person sees it.
type Peer struct {
	ID     string
	Name   string
	State  string // one word of the node's, for choosing a colour or a translation
	Reason string // in words, for people
	Ready  bool   // it can be invited
}

// Member is a Mac in the cluster.
type Member struct {
	ID          string
	Name        string
	Rank        int
	WeightBytes int64
}

// Model is a model file on this Mac.
type Model struct {
	Name         string
	Path         string
	Fingerprint  string // equal where the file is
	Architecture string
	Bytes        int64
}

// Progress of joining, summed over the Macs that report it.
type Progress struct {
	Stage       string   // one word of the node's, for choosing a translation
	Waiting     []string // names of the Macs that the stage waits for
	Done, Total int64    // bytes; Total 0: not known yet
}

// Node is what Cluster needs of a node.
type Node interface {
	Self() Peer
	Peers() []Peer
	// Subscribe has changed called, on the node's goroutine, when peers or the
	// group have changed or joining goes on; progress is nil but for the latter.
	Subscribe(changed func(progress *Progress)) (cancel func())
	// Join leads a group of this Mac and the members; it blocks until the
	// model is loaded everywhere.
	Join(ctx context.Context, members []string, model Model) (Group, error)
	// Group is the group this Mac is in, or nil.
	Group() Group
}

// Group is a running cluster.
type Group interface {
	Asker
	Epoch() uint64
	Leader() string // ID
	Model() string
	NoTemplate() bool // the model has no chat template, so a plain one is used
	Members() []Member
	Done() <-chan struct{}
	Err() error
	Close() error // leaves; ends it for all when this Mac leads
}

// Library lists the model files of this Mac.
type Library interface {
	List() ([]Model, error)
	// Add makes a file outside the library's folders part of it, and returns
	// the path that List will show.
	Add(path string) (string, error)
	// Folder is where people put model files.
	Folder() string
}

// Phase is where this Mac stands.
type Phase int

// The phases.
const (
	Alone   Phase = iota // in no cluster
	Joining              // invitations are out, or the model loads
	Joined               // in a cluster, a cluster of one included
	Leaving              // on the way out
)

// PeerRow is a peer with this person's wishes.
type PeerRow struct {
	Peer
	Ticked bool
	Member bool // in the cluster this Mac is in
}

// ClusterState is a snapshot for showing.
type ClusterState struct {
	Self     Peer
	Peers    []PeerRow
	Models   []Model
	Listing  bool  // the library is being read
	ListErr  error // why Models may be incomplete
	Chosen   string
	Folder   string
	Phase    Phase
	Progress Progress
	Leading  bool   // with Joined
	Leader   string // name, with Joined
	Model    string // with Joined
	// NoTemplate, with Joined: the model has no chat template, so a plain one is
	// used.
	NoTemplate bool
	Members    []Member
	Err        error // why the last attempt or the last cluster ended
}

// Ticked counts the ticked peers that can be invited.
func (s ClusterState) Ticked() int {
	n := 0
	for _, p := range s.Peers {
		if p.Ticked && p.Ready {
			n++
		}
	}
	return n
}

// Cluster is the view model of the cluster window and of the menu. It tells its
// Session who answers.
type Cluster struct {
	node    Node
	library Library
	session *Session
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	unwatch func()
	wg      sync.WaitGroup

	mu        sync.Mutex // guards the fields below
	closed    bool
	observers map[int]func()
	nextID    int
	ticked    map[string]bool
	models    []Model
	listing   bool
	relist    bool // asked for while listing
	listErr   error
	chosen    string // path
	phase     Phase
	progress  Progress
	stop      context.CancelFunc // of the running Join
	group     Group
	lastEpoch uint64 // of the group that was left last
	err       error
}

// NewCluster begins to watch the node. Close ends it; node, library and session
// stay the caller's.
func NewCluster(node Node, library Library, session *Session) *Cluster {
	ctx, cancel := context.WithCancel(context.Background())
	c := &Cluster{
		node: node, library: library, session: session, ctx: ctx, cancel: cancel,
		observers: map[int]func(){}, ticked: map[string]bool{},
	}
	c.unwatch = node.Subscribe(c.nodeChanged)
	c.nodeChanged(nil)
	c.Reload()
	return c
}

// Close leaves the cluster this Mac leads or is in and waits for all that runs.
func (c *Cluster) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	group := c.group
	c.mu.Unlock()
	c.cancel()
	c.unwatch()
	c.session.Use(nil, "")
	var err error
	if group != nil {
		err = group.Close()
	}
	c.wg.Wait()
	return err
}

// Subscribe has changed called, from any goroutine, whenever State may give
// something new.
func (c *Cluster) Subscribe(changed func()) (cancel func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := c.nextID
	c.nextID++
	c.observers[id] = changed
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.observers, id)
	}
}

func (c *Cluster) tell() {
	c.mu.Lock()
	var list []func()
	for _, f := range c.observers {
		list = append(list, f)
	}
	c.mu.Unlock()
	for _, f := range list {
		f()
	}
}

// State is what can be shown now.
func (c *Cluster) State() ClusterState {
	self, peers := c.node.Self(), c.node.Peers()
	c.mu.Lock()
	defer c.mu.Unlock()
	s := ClusterState{
		Self: self, Models: slices.Clone(c.models), Listing: c.listing, ListErr: c.listErr, Chosen: c.chosen,
		Folder: c.library.Folder(), Phase: c.phase, Progress: c.progress, Err: c.err,
	}
	if c.group != nil {
		s.Members = c.group.Members()
		s.Model, s.NoTemplate = c.group.Model(), c.group.NoTemplate()
		s.Leading = c.group.Leader() == self.ID
		for _, m := range s.Members {
			if m.ID == c.group.Leader() {
				s.Leader = m.Name
			}
		}
	}
	for _, p := range peers {
		s.Peers = append(s.Peers, PeerRow{
			Peer: p, Ticked: c.ticked[p.ID],
			Member: slices.ContainsFunc(s.Members, func(m Member) bool { return m.ID == p.ID }),
		})
	}
	return s
}

// Tick notes whether a peer is wanted in the next cluster.
func (c *Cluster) Tick(id string, wanted bool) {
	c.mu.Lock()
	if wanted {
		c.ticked[id] = true
	} else {
		delete(c.ticked, id)
	}
	c.mu.Unlock()
	c.tell()
}

// Choose notes the model, by its path, for the next cluster.
func (c *Cluster) Choose(path string) {
	c.mu.Lock()
	c.chosen = path
	c.mu.Unlock()
	c.tell()
}

// nodeChanged follows groups that others have begun or ended.
func (c *Cluster) nodeChanged(progress *Progress) {
	if progress != nil {
		c.mu.Lock()
		c.progress = *progress
		c.mu.Unlock()
	} else if g := c.node.Group(); g != nil && g.Leader() != c.node.Self().ID && !c.over(g) {
		c.enter(g) // a group that this Mac leads is entered by Join
	}
	c.tell()
}

// over says whether the group has ended or was left; a node may name it a
// moment longer.
func (c *Cluster) over(g Group) bool {
	select {
	case <-g.Done():
		return true
	default:
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return g.Epoch() == c.lastEpoch
}

// errLeft: the person left, which is no error to show.
var errLeft = errors.New("left")
