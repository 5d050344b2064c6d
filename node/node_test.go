package node

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"daisy/inference"
	"daisy/inference/gguf"
	"daisy/inference/modeltest"
	"daisy/node/models"
)

func TestMain(m *testing.M) {
	if os.Getenv(processEnv) != "" {
		os.Exit(processMain())
	}
	goleak.VerifyTestMain(m)
}

const patience = 20 * time.Second // for what takes milliseconds on an idle machine

// writeModel writes the tiny model that all nodes of a test share.
func writeModel(t *testing.T, seed uint64) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	modeltest.Write(t, path, modeltest.Options{Seed: seed, Context: 2048, KV: []gguf.KV{{Key: "general.name", Value: "Tiny"}}})
	return path
}

func yes(context.Context, Invitation) bool { return true }

// startNode starts a node on loopback that has the models at the paths.
func startNode(t *testing.T, name string, consent func(context.Context, Invitation) bool, paths ...string) *Node {
	t.Helper()
	n, err := Start(t.Context(), testConfig(t, t.TempDir(), name, consent, paths...))
	require.NoError(t, err)
	t.Cleanup(func() { n.Close() })
	return n
}

func testConfig(t testing.TB, dir, name string, consent func(context.Context, Invitation) bool, paths ...string) Config {
	t.Helper()
	library := models.New()
	for _, p := range paths {
		_, err := library.Add(p)
		require.NoError(t, err)
	}
	return Config{Dir: dir, Name: name, Interfaces: []string{"lo"}, Models: library, Consent: consent, Threads: 1, Log: slog.New(slog.DiscardHandler)}
}

func modelOf(t *testing.T, n *Node) models.Model {
	t.Helper()
	list, err := n.config.Models.List()
	require.NoError(t, err)
	require.NotEmpty(t, list)
	return list[0]
}

// until waits for a condition that changes with the node's events.
func until(t *testing.T, n *Node, what string, condition func() bool) {
	t.Helper()
	changed := make(chan struct{}, 1)
	cancel := n.Subscribe(func(Event) {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	defer cancel()
	deadline := time.After(patience)
	for !condition() {
		select {
		case <-changed:
		case <-deadline:
			t.Fatalf("%s: not within %v; peers %+v", what, patience, n.Peers())
		}
	}
}

func state(n *Node, id ID) PeerState {
	for _, p := range n.Peers() {
		if p.ID == id {
			return p.State
		}
	}
	return ""
}

// meet pairs leader with all others, waits until it sees them ready, and returns
// their IDs.
func meet(t *testing.T, leader *Node, others ...*Node) (ids []ID) {
	t.Helper()
	for _, o := range others {
		id := o.Self().ID
		befriend(t, leader, o)
		until(t, leader, o.Self().Name+" is ready", func() bool { return state(leader, id) == PeerReady })
		ids = append(ids, id)
	}
	return ids
}

// befriend hands two nodes trust in each other.
func befriend(t *testing.T, a, b *Node) {
	t.Helper()
	if !a.trust.Has(b.Self().ID) || !b.trust.Has(a.Self().ID) {
		require.NoError(t, a.Trust(b.Self().ID))
		require.NoError(t, b.Trust(a.Self().ID))
	}
}

func closed(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatalf("%s: not within %v", what, patience)
	}
}

// ask runs one greedy request.
func ask(t *testing.T, c *Cluster, nTokens int) string {
	t.Helper()
	var text strings.Builder
	stats, err := c.Chat(t.Context(), request(nTokens), func(d inference.Delta) { text.WriteString(d.Text + d.Reasoning) })
	require.NoError(t, err)
	require.Equal(t, nTokens, stats.GeneratedTokens)
	return text.String()
}

func request(nTokens int) inference.Request {
	return inference.Request{Prompt: "The daisy is a flower", MaxTokens: nTokens, IgnoreEnd: true}
}

func free(n *Node) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.taken == "" && n.cluster == nil && len(n.assemblies) == 0
}

var fast = JoinOptions{Threads: 1, Context: 256}

func TestSolo(t *testing.T) {
	n := startNode(t, "alone", nil, writeModel(t, 1))
	c, err := n.Join(t.Context(), nil, modelOf(t, n), fast)
	require.NoError(t, err)
	assert.Same(t, c, n.Cluster())
	assert.Equal(t, n.Self().ID, c.Leader())
	members := c.Members()
	require.Len(t, members, 1)
	assert.Positive(t, members[0].WeightBytes)
	assert.NotEmpty(t, ask(t, c, 8))

	_, err = n.Join(t.Context(), nil, modelOf(t, n), fast)
	require.ErrorIs(t, err, ErrBusy)
	require.NoError(t, c.Close())
	require.NoError(t, c.Close())
	require.NoError(t, c.Err())
	assert.Nil(t, n.Cluster())
	_, err = c.Chat(t.Context(), request(1), nil)
	require.ErrorIs(t, err, ErrClosed)
}

func TestClusterAnswersAsOneNodeDoes(t *testing.T) {
	path := writeModel(t, 1)
	a, b, c := startNode(t, "a", yes, path), startNode(t, "b", yes, path), startNode(t, "c", yes, path)
	solo, err := a.Join(t.Context(), nil, modelOf(t, a), fast)
	require.NoError(t, err)
	want, whole := ask(t, solo, 12), solo.Members()[0].WeightBytes
	require.NoError(t, solo.Close())

	for _, members := range [][]*Node{{b}, {c, b}} {
		ids := meet(t, a, members...)
		cluster, err := a.Join(t.Context(), ids, modelOf(t, a), fast)
		require.NoError(t, err)
		assert.Equal(t, want, ask(t, cluster, 12))
		held := cluster.Members()
		require.Len(t, held, 1+len(members))
		for r, m := range held {
			assert.Equal(t, r, m.Rank)
			assert.Positive(t, m.WeightBytes)
			assert.Less(t, m.WeightBytes, whole)
		}
		for r, m := range members {
			assert.Equal(t, m.Self().ID, held[r+1].ID)
			until(t, m, "the cluster is published", func() bool { return m.Cluster() != nil })
			theirs := m.Cluster()
			assert.Equal(t, cluster.Epoch(), theirs.Epoch())
			assert.Equal(t, held, theirs.Members())
			assert.Equal(t, a.Self().ID, theirs.Leader())
			_, err := theirs.Chat(t.Context(), request(1), nil)
			require.ErrorIs(t, err, ErrNotLeader)
			assert.Equal(t, PeerMember, state(a, m.Self().ID))
		}
		var follower *Cluster = members[0].Cluster()
		require.NoError(t, cluster.Close())
		closed(t, "the member is free", follower.Done())
		require.ErrorIs(t, follower.Err(), ErrEnded)
		assert.ErrorContains(t, follower.Err(), "a ended the cluster")
		for _, m := range members {
			assert.True(t, free(m), "when Close returns, the members are free")
		}
		assert.True(t, free(a))
	}

	// Somebody else may lead now.
	meet(t, b, a)
	cluster, err := b.Join(t.Context(), []ID{a.Self().ID}, modelOf(t, b), fast)
	require.NoError(t, err)
	assert.Equal(t, want, ask(t, cluster, 12))
}

func TestJoinRefused(t *testing.T) {
	path := writeModel(t, 1)
	no := func(context.Context, Invitation) bool { return false }
	leader := startNode(t, "leader", yes, path)
	willing := startNode(t, "willing", yes, path)

	refused := func(t *testing.T, other *Node, opt JoinOptions) *NodeError {
		t.Helper()
		ids := meet(t, leader, willing, other)
		c, err := leader.Join(t.Context(), ids, modelOf(t, leader), opt)
		require.Nil(t, c)
		var about *NodeError
		require.ErrorAs(t, err, &about)
		require.ErrorIs(t, err, ErrRefused)
		assert.Equal(t, other.Self().ID, about.ID)
		assert.True(t, free(leader))
		assert.True(t, free(willing), "everybody stands down")
		return about
	}
	t.Run("by the owner", func(t *testing.T) {
		err := refused(t, startNode(t, "owner", no, path), fast)
		assert.EqualError(t, err, "owner does not take part: its owner declined")
	})
	t.Run("by default", func(t *testing.T) {
		refused(t, startNode(t, "default", nil, path), fast)
	})
	t.Run("without the model", func(t *testing.T) {
		err := refused(t, startNode(t, "other model", yes, writeModel(t, 2)), fast)
		assert.ErrorContains(t, err, "does not have the model Tiny")
	})
	t.Run("busy", func(t *testing.T) {
		busy := startNode(t, "busy", yes, path)
		meet(t, leader, busy)
		c, err := busy.Join(t.Context(), nil, modelOf(t, busy), fast)
		require.NoError(t, err)
		_, err = leader.Join(t.Context(), []ID{busy.Self().ID}, modelOf(t, leader), fast)
		require.ErrorIs(t, err, ErrRefused)
		assert.ErrorContains(t, err, "in a cluster already, led by busy")
		require.NoError(t, c.Close())
	})
	t.Run("no answer in time", func(t *testing.T) {
		asked := make(chan Invitation, 1)
		asleep := startNode(t, "asleep", func(ctx context.Context, inv Invitation) bool {
			asked <- inv
			<-ctx.Done()
			return true
		}, path)
		err := refused(t, asleep, JoinOptions{Threads: 1, Context: 256, Within: 300 * time.Millisecond})
		assert.ErrorContains(t, err, "answer") // whoever's clock is first
		inv := <-asked
		assert.Equal(t, "leader", inv.Leader.Name)
		assert.Equal(t, []string{"leader", "willing", "asleep"}, inv.Nodes)
		assert.Equal(t, "Tiny", inv.Model)
		until(t, asleep, "it is free again", func() bool { return free(asleep) })
	})
	t.Run("gone", func(t *testing.T) {
		gone := startNode(t, "gone", yes, path)
		ids := meet(t, leader, gone)
		gone.server.Close() // it is announced still
		_, err := leader.Join(t.Context(), ids, modelOf(t, leader), fast)
		require.ErrorIs(t, err, ErrRefused)
		assert.ErrorContains(t, err, "gone does not take part")
	})
	t.Run("unknown", func(t *testing.T) {
		_, err := leader.Join(t.Context(), []ID{ID(strings.Repeat("a", 52))}, modelOf(t, leader), fast)
		require.ErrorIs(t, err, ErrUnknownPeer)
	})
	t.Run("itself", func(t *testing.T) {
		_, err := leader.Join(t.Context(), []ID{leader.Self().ID}, modelOf(t, leader), fast)
		require.ErrorContains(t, err, "twice")
	})
	t.Run("afterwards all works", func(t *testing.T) {
		c, err := leader.Join(t.Context(), meet(t, leader, willing), modelOf(t, leader), fast)
		require.NoError(t, err)
		ask(t, c, 4)
		require.NoError(t, c.Close())
	})
}

func TestJoinCancelled(t *testing.T) {
	path := writeModel(t, 1)
	leader := startNode(t, "leader", yes, path)
	asked, answered := make(chan struct{}), make(chan struct{})
	member := startNode(t, "member", func(ctx context.Context, _ Invitation) bool {
		defer close(answered)
		close(asked)
		<-ctx.Done()
		return false
	}, path)
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	_, err := leader.Join(ctx, meet(t, leader, member), modelOf(t, leader), fast)
	require.ErrorIs(t, err, context.Canceled)
	closed(t, "the question is withdrawn", answered)
	assert.True(t, free(leader))
	until(t, member, "the member is free", func() bool { return free(member) })
}

// TestModelFailsToLoad: the file went bad between the consent and the loading
// on one node only; the leader learns the reason in that node's words.
func TestModelFailsToLoad(t *testing.T) {
	path, theirs := writeModel(t, 1), writeModel(t, 1)
	leader := startNode(t, "leader", yes, path)
	member := startNode(t, "member", func(context.Context, Invitation) bool {
		return assert.NoError(t, os.Truncate(theirs, 1000))
	}, theirs)
	_, err := leader.Join(t.Context(), meet(t, leader, member), modelOf(t, leader), fast)
	require.ErrorIs(t, err, ErrFailed)
	assert.ErrorContains(t, err, "member failed: loading tiny.gguf")
	assert.True(t, free(leader))
	assert.True(t, free(member))
}

// TestLeaving: whoever leaves is not taken for lost, and the rest goes on.
func TestLeaving(t *testing.T) {
	path := writeSteadyModel(t)
	a, b, c := startNode(t, "a", yes, path), startNode(t, "b", yes, path), startNode(t, "c", yes, path)
	want := undisturbed(t, a, 200)
	for _, way := range []struct {
		name  string
		leave func()
	}{
		{"Leave", func() { b.Cluster().Leave() }},
		{"Node.Close", func() { b.Close() }},
	} {
		t.Run(way.name, func(t *testing.T) {
			cluster, err := a.Join(t.Context(), meet(t, a, b, c), modelOf(t, a), fast)
			require.NoError(t, err)
			for _, n := range []*Node{b, c} {
				until(t, n, "the cluster is published", func() bool { return n.Cluster() != nil })
			}
			third := c.Cluster()
			story := follow(t, a)
			answer := read(t, cluster, 200, 20, func() { go way.leave() }) // waited for by the cleanup of b
			require.NoError(t, answer.err)
			t.Logf("left; the pause was %v", answer.pause)
			require.Equal(t, want, answer.text)
			paused := story.paused(t)
			require.ErrorIs(t, paused.Cause, ErrLeft)
			require.EqualError(t, paused.Cause, "b left the cluster")
			require.Equal(t, 2, story.continued(t).Nodes)
			closed(t, "the third's part has ended", third.Done())
			require.EqualError(t, third.Err(), "b left the cluster")
			require.NoError(t, cluster.Close())
		})
	}
}

func TestNodeCloseEndsItsCluster(t *testing.T) {
	path := writeModel(t, 1)
	leader, member := startNode(t, "leader", yes, path), startNode(t, "member", yes, path)
	_, err := leader.Join(t.Context(), meet(t, leader, member), modelOf(t, leader), fast)
	require.NoError(t, err)
	until(t, member, "the cluster is published", func() bool { return member.Cluster() != nil })
	theirs := member.Cluster()
	require.NoError(t, leader.Close())
	require.NoError(t, leader.Close())
	closed(t, "the member is free", theirs.Done())
	require.ErrorIs(t, theirs.Err(), ErrEnded)
	until(t, member, "the leader is seen to be gone", func() bool {
		s := state(member, leader.Self().ID)
		return s == "" || s == PeerUnreachable // its goodbye may be lost
	})
	_, err = leader.Join(t.Context(), nil, modelOf(t, leader), fast)
	require.ErrorIs(t, err, ErrClosed)
}

func TestOneProcessAFolder(t *testing.T) {
	dir := t.TempDir()
	config := testConfig(t, dir, "n", nil)
	n, err := Start(t.Context(), config)
	require.NoError(t, err)
	_, err = Start(t.Context(), config)
	require.ErrorContains(t, err, "another Daisy runs already")
	id := n.Self().ID
	require.NoError(t, n.Close())
	n, err = Start(t.Context(), config)
	require.NoError(t, err)
	assert.Equal(t, id, n.Self().ID, "a node stays who it is")
	require.NoError(t, n.Close())
}

func TestSelf(t *testing.T) {
	n := startNode(t, "me \n here", nil)
	self := n.Self()
	assert.Equal(t, "me here", self.Name)
	assert.Positive(t, self.Cores)
	assert.Positive(t, self.MemoryBytes)
	require.Len(t, self.Addrs, 1)
	assert.True(t, self.Addrs[0].Addr().IsLoopback(), "with loopback alone, it listens there alone")
	assert.Empty(t, state(n, self.ID), "a node is not its own peer")
}

// Cores are shared when the owner says so, whatever the addresses say.
func TestSharedCores(t *testing.T) {
	for _, config := range []bool{false, true} {
		for _, met := range []bool{false, true} {
			require.Equal(t, config || met, joined(inference.Options{SharedCores: config}, nil, met).SharedCores, "%v, %v", config, met)
		}
	}
}
