package session

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"daisy/inference"
)

// scripted is a Node whose joins a test answers.
type scripted struct {
	joins chan join

	mu      sync.Mutex // guards the fields below
	peers   []Peer
	group   Group
	changed func(*Progress)
}

type join struct {
	members []string
	model   Model
	reply   chan joined
}

type joined struct {
	group Group
	err   error
}

func (n *scripted) Self() Peer { return Peer{ID: "self", Name: "Self"} }

func (n *scripted) Peers() []Peer {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.peers
}

func (n *scripted) Subscribe(changed func(*Progress)) func() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.changed = changed
	return func() {}
}

func (n *scripted) Join(ctx context.Context, members []string, model Model) (Group, error) {
	j := join{members, model, make(chan joined, 1)}
	n.joins <- j
	select {
	case r := <-j.reply:
		return r.group, r.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (n *scripted) Group() Group {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.group
}

// enter puts the node into a group that somebody else leads.
func (n *scripted) enter(g Group) {
	n.mu.Lock()
	n.group = g
	n.mu.Unlock()
	n.changed(nil)
}

type scriptedGroup struct {
	askerFunc
	epoch  uint64
	leader string
	plain  bool

	once sync.Once
	done chan struct{}
	err  error
}

func newGroup(epoch uint64, leader string) *scriptedGroup {
	return &scriptedGroup{epoch: epoch, leader: leader, done: make(chan struct{})}
}

func (g *scriptedGroup) Epoch() uint64    { return g.epoch }
func (g *scriptedGroup) Leader() string   { return g.leader }
func (g *scriptedGroup) Model() string    { return "tiny" }
func (g *scriptedGroup) NoTemplate() bool { return g.plain }
func (g *scriptedGroup) Members() []Member {
	return []Member{{ID: "self", Name: "Self"}, {ID: "a", Name: "A", Rank: 1}}
}
func (g *scriptedGroup) Done() <-chan struct{} { return g.done }
func (g *scriptedGroup) Err() error            { return g.err }
func (g *scriptedGroup) Close() error          { g.end(nil); return nil }
func (g *scriptedGroup) end(err error) {
	g.once.Do(func() {
		g.err = err
		close(g.done)
	})
}

type shelf struct {
	mu     sync.Mutex // guards models
	models []Model
}

func (s *shelf) List() ([]Model, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.models, nil
}

func (s *shelf) Add(path string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if path == "/bad" {
		return "", errors.New("not a model file")
	}
	s.models = append(s.models, Model{Name: "added", Path: path})
	return path, nil
}

func (s *shelf) Folder() string { return "/models" }

type clusterTest struct {
	*Cluster
	node    *scripted
	session *Session
	signal  chan struct{}
}

func newCluster(t *testing.T) *clusterTest {
	s, _ := newSession(t, "")
	c := &clusterTest{
		node:    &scripted{joins: make(chan join, 1), peers: []Peer{{ID: "a", Name: "A", Ready: true}, {ID: "b", Name: "B", Reason: "busy"}}},
		session: s,
		signal:  make(chan struct{}, 1),
	}
	c.Cluster = NewCluster(c.node, &shelf{models: []Model{{Name: "tiny", Path: "/models/tiny"}, {Name: "big", Path: "/models/big"}}}, s)
	c.Subscribe(func() {
		select {
		case c.signal <- struct{}{}:
		default:
		}
	})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	c.until(t, func(s ClusterState) bool { return len(s.Models) == 2 })
	return c
}

// until follows the changes until the state is as wanted.
func (c *clusterTest) until(t *testing.T, ok func(ClusterState) bool) ClusterState {
	t.Helper()
	limit := time.After(10 * time.Second)
	for {
		s := c.State()
		if ok(s) {
			return s
		}
		select {
		case <-c.signal:
		case <-limit:
			require.FailNow(t, "the state did not come", "%+v", s)
		}
	}
}

func phase(p Phase) func(ClusterState) bool {
	return func(s ClusterState) bool { return s.Phase == p }
}

func TestJoinAndLeave(t *testing.T) {
	c := newCluster(t)
	s := c.State()
	require.Equal(t, "/models/tiny", s.Chosen, "the first model is chosen")
	require.Equal(t, "/models", s.Folder)
	require.Equal(t, []PeerRow{{Peer: c.node.peers[0]}, {Peer: c.node.peers[1]}}, s.Peers)

	c.Tick("a", true)
	c.Tick("b", true) // not ready: not invited
	c.Choose("/models/big")
	require.Equal(t, 1, c.State().Ticked())
	c.Join()
	c.Join() // once is enough
	j := <-c.node.joins
	require.Equal(t, []string{"a"}, j.members)
	require.Equal(t, "big", j.model.Name)
	require.Equal(t, Joining, c.State().Phase)
	c.node.changed(&Progress{Stage: "loading", Done: 1, Total: 4})
	require.Equal(t, Progress{Stage: "loading", Done: 1, Total: 4}, c.State().Progress)

	g := newGroup(1, "self")
	g.plain = true
	g.askerFunc = func(context.Context, inference.Request, func(inference.Delta)) (inference.Stats, error) {
		return inference.Stats{}, nil
	}
	j.reply <- joined{group: g}
	s = c.until(t, phase(Joined))
	require.True(t, s.Leading)
	require.Equal(t, "Self", s.Leader)
	require.Equal(t, "tiny", s.Model)
	require.True(t, s.NoTemplate)
	require.True(t, s.Peers[0].Member)
	require.False(t, s.Peers[1].Member)
	require.Eventually(t, func() bool { return c.session.Model() == "tiny" }, 10*time.Second, time.Millisecond)

	c.Leave()
	s = c.until(t, phase(Alone))
	require.NoError(t, s.Err)
	require.Empty(t, s.Members)
	require.False(t, s.NoTemplate)
	<-g.Done()
	require.Eventually(t, func() bool { return c.session.Model() == "" }, 10*time.Second, time.Millisecond)
	c.Leave() // nothing to leave
}

func TestJoinFails(t *testing.T) {
	c := newCluster(t)
	c.Join()
	j := <-c.node.joins
	require.Empty(t, j.members)
	j.reply <- joined{err: errors.New("A declined")}
	s := c.until(t, func(s ClusterState) bool { return s.Err != nil })
	require.EqualError(t, s.Err, "joining the cluster: A declined")
	require.Equal(t, Alone, s.Phase)
}

func TestJoinCancelled(t *testing.T) {
	c := newCluster(t)
	c.Join()
	<-c.node.joins
	c.Leave()
	s := c.until(t, phase(Alone))
	require.NoError(t, s.Err, "the person wanted it")
}

func TestClusterIsLost(t *testing.T) {
	c := newCluster(t)
	c.Join()
	j := <-c.node.joins
	g := newGroup(1, "self")
	j.reply <- joined{group: g}
	c.until(t, phase(Joined))
	g.end(errors.New("rank 1 was lost"))
	s := c.until(t, phase(Alone))
	require.EqualError(t, s.Err, "the cluster ended: rank 1 was lost")
}

func TestMemberOfAnothersCluster(t *testing.T) {
	c := newCluster(t)
	g := newGroup(7, "a")
	c.node.enter(g)
	s := c.until(t, phase(Joined))
	require.False(t, s.Leading)
	require.Equal(t, "A", s.Leader)
	require.Empty(t, c.session.Model(), "only the leader asks")
	c.node.changed(nil) // told twice
	c.Leave()
	c.until(t, phase(Alone))
	<-g.Done()
}

func TestCloseWhileJoining(t *testing.T) {
	c := newCluster(t)
	c.Join()
	<-c.node.joins
	require.NoError(t, c.Close())
	c.Join()
	c.Reload()
	c.AddFile("/x")
	require.NoError(t, c.Close())
}

func TestJoinWithoutModel(t *testing.T) {
	c := newCluster(t)
	c.Choose("/gone")
	c.Join()
	require.ErrorIs(t, c.State().Err, ErrNoModel)
}

func TestAddFile(t *testing.T) {
	c := newCluster(t)
	c.AddFile("/elsewhere/new.gguf")
	s := c.until(t, func(s ClusterState) bool { return len(s.Models) == 3 })
	require.Equal(t, "/elsewhere/new.gguf", s.Chosen)
	c.AddFile("/bad")
	s = c.until(t, func(s ClusterState) bool { return s.Err != nil })
	require.EqualError(t, s.Err, "/bad: not a model file")
	require.Equal(t, "/elsewhere/new.gguf", s.Chosen)
}
