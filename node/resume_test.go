package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"daisy/inference"
	"daisy/inference/gguf"
	"daisy/inference/modeltest"
	"daisy/inference/sample"
	"daisy/node/control"
)

// writeSteadyModel is one whose draws do not depend on where ranks round: attention
// adds little to what it computes, though a thousand times as much as the rounding.
func writeSteadyModel(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	modeltest.Write(t, path, modeltest.Options{
		Seed: 1, Context: 2048, Attention: 3e-3, KV: []gguf.KV{{Key: "general.name", Value: "Tiny"}},
	})
	return path
}

// drawn is a request whose answer goes on only with the sampler's state.
func drawn(nTokens int) inference.Request {
	req := request(nTokens)
	req.Sampling = sample.Params{Temperature: 1, TopP: 0.95, RepeatPenalty: 1.2, PenaltyWindow: 32, Seed: 5}
	return req
}

// undisturbed is the answer to drawn(nTokens) that one node gives alone.
func undisturbed(t *testing.T, n *Node, nTokens int) string {
	t.Helper()
	c, err := n.Join(t.Context(), nil, modelOf(t, n), fast)
	require.NoError(t, err)
	r := read(t, c, nTokens, nTokens, func() {})
	require.NoError(t, r.err)
	require.NoError(t, c.Close())
	return r.text
}

// reading is what one reader saw.
type reading struct {
	text  string
	pause time.Duration // the longest, from when disturb was called
	stats inference.Stats
	err   error
}

// read asks for nTokens and calls disturb at piece number at.
func read(t *testing.T, c *Cluster, nTokens, at int, disturb func()) (r reading) {
	t.Helper()
	var text strings.Builder
	n := 0
	var last time.Time
	r.stats, r.err = c.Chat(t.Context(), drawn(nTokens), func(d inference.Delta) {
		now := time.Now()
		if n >= at {
			r.pause = max(r.pause, now.Sub(last))
		}
		last = now
		text.WriteString(d.Text + d.Reasoning)
		if n++; n == at {
			disturb()
		}
	})
	r.text = text.String()
	return r
}

// story is what a leader tells of its cluster's pauses.
type story struct {
	pauses chan Paused
	goesOn chan Continued
}

func follow(t *testing.T, n *Node) story {
	s := story{make(chan Paused, 10), make(chan Continued, 10)}
	t.Cleanup(n.Subscribe(func(e Event) {
		switch e := e.(type) {
		case Paused:
			s.pauses <- e
		case Continued:
			s.goesOn <- e
		}
	}))
	return s
}

func (s story) paused(t *testing.T) Paused       { return await(t, s.pauses) }
func (s story) continued(t *testing.T) Continued { return await(t, s.goesOn) }

func await[T any](t *testing.T, from <-chan T) (x T) {
	t.Helper()
	select {
	case x = <-from:
	case <-time.After(patience):
		t.Fatalf("no %T within %v", x, patience)
	}
	return x
}

// TestGoingOnFails: a member that cannot load again is left out too; after two such
// failures the answer ends with the loss as its error, and its text stays.
func TestGoingOnFails(t *testing.T) {
	for _, c := range []struct {
		name   string
		broken []string
		nodes  int // that go on, 0 for none
	}{
		{"once", []string{"b"}, 2},
		{"twice", []string{"b", "c"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			paths := map[string]string{}
			nodes := map[string]*Node{}
			for _, name := range []string{"leader", "b", "c"} { // each has its own copy
				paths[name] = writeSteadyModel(t)
				nodes[name] = startNode(t, name, yes, paths[name])
			}
			leader := nodes["leader"]
			want := undisturbed(t, leader, 200)
			victim := startProcess(t, writeSteadyModel(t), leader, "")
			until(t, leader, "the victim is found", func() bool { return find(leader, victim.name).State == PeerReady })
			members := append(meet(t, leader, nodes["b"], nodes["c"]), find(leader, victim.name).ID)
			cluster, err := leader.Join(t.Context(), members, modelOf(t, leader), JoinOptions{Threads: 1, Context: 256})
			require.NoError(t, err)
			story := follow(t, leader)
			for _, name := range c.broken {
				require.NoError(t, os.Remove(paths[name]))
			}
			answer := read(t, cluster, 200, 20, func() { assert.NoError(t, victim.Process.Kill()) })
			require.ErrorIs(t, story.paused(t).Cause, ErrLost)
			if c.nodes > 0 {
				require.NoError(t, answer.err)
				require.Equal(t, want, answer.text)
				require.Equal(t, c.nodes, story.continued(t).Nodes)
				require.NoError(t, cluster.Close())
				return
			}
			require.ErrorIs(t, answer.err, ErrLost)
			var about *NodeError
			require.ErrorAs(t, answer.err, &about)
			assert.Equal(t, victim.name, about.Name, "the error is the loss")
			assert.ErrorContains(t, answer.err, "going on failed: ")
			assert.NotEmpty(t, answer.text)
			assert.True(t, strings.HasPrefix(want, strings.TrimSuffix(answer.text, "\uFFFD")))
			closed(t, "the cluster has ended", cluster.Done())
			require.ErrorIs(t, cluster.Err(), ErrLost)
			assert.True(t, free(leader))
			_, err = cluster.Chat(t.Context(), request(1), nil)
			require.ErrorIs(t, err, ErrLost)
		})
	}
}

// TestCloseWhilePaused: the person's wish ends the pause.
func TestCloseWhilePaused(t *testing.T) {
	path := writeSteadyModel(t)
	a, b, c := startNode(t, "a", yes, path), startNode(t, "b", yes, path), startNode(t, "c", yes, path)
	cluster, err := a.Join(t.Context(), meet(t, a, b, c), modelOf(t, a), fast)
	require.NoError(t, err)
	cancel := a.Subscribe(func(e Event) {
		if _, ok := e.(Paused); ok {
			cluster.stop(errLeft) // what Close does first
		}
	})
	defer cancel()
	until(t, b, "the cluster is published", func() bool { return b.Cluster() != nil })
	answer := read(t, cluster, 200, 20, func() { go b.Cluster().Leave() }) // waited for by the cleanup of b
	require.ErrorIs(t, answer.err, ErrClosed)
	assert.NotEmpty(t, answer.text)
	closed(t, "the cluster has ended", cluster.Done())
	require.NoError(t, cluster.Err())
	until(t, c, "the third is free", func() bool { return free(c) })
}

func TestReplan(t *testing.T) {
	members := []control.Member{{ID: "leader"}, {ID: "b"}, {ID: "c"}}
	plan := func(term int, members []control.Member, cause error) []ID {
		return ids((&leading{membership: &membership{term: term, invited: members}}).replan(cause))
	}
	about := func(id ID, what error) error { return fmt.Errorf("so: %w", &NodeError{ID: id, What: what}) }
	for _, what := range []error{ErrLost, ErrLeft, ErrFailed, ErrRefused} {
		assert.Equal(t, []ID{"leader", "c"}, plan(0, members, about("b", what)))
		assert.Equal(t, []ID{"leader"}, plan(0, members[:2], about("b", what)))
	}
	noMemory := fmt.Errorf("loading: %w", inference.ErrNoMemory)
	assert.Equal(t, []ID{"leader"}, plan(1, members, noMemory), "perhaps alone")
	for _, cause := range []error{errLeft, errors.New("a bug"), about("leader", ErrFailed)} {
		assert.Nil(t, plan(0, members, cause))
	}
	assert.Nil(t, plan(2, members[:1], noMemory))
}

// TestConsentIsKept for the same leader, the same model and nobody new, once, and
// only when the group ended over somebody else.
func TestConsentIsKept(t *testing.T) {
	n := startNode(t, "me", yes)
	me := n.Self().ID
	invite := func(model string, ids ...ID) *control.Invite {
		i := &control.Invite{Model: control.Model{Fingerprint: model}}
		for _, id := range ids {
			i.Members = append(i.Members, control.Member{ID: id})
		}
		return i
	}
	lost := func(id ID) error { return &NodeError{ID: id, What: ErrLost} }
	before := invite("m", "leader", me, "b", "c")
	again := invite("m", "leader", me, "b")
	for _, c := range []struct {
		name  string
		cause error
		next  *control.Invite
		want  bool
	}{
		{"a member was lost", lost("c"), again, true},
		{"two were", lost("c"), invite("m", "leader", me), true},
		{"the same again", lost("c"), before, false},
		{"somebody new", lost("c"), invite("m", "leader", me, "d"), false},
		{"another leader", lost("c"), invite("m", "b", me, "leader"), false},
		{"another model", lost("c"), invite("other", "leader", me, "b"), false},
		{"the leader was lost", lost("leader"), again, false},
		{"the leader ended it", &NodeError{ID: "leader", What: ErrEnded}, again, false},
		{"its owner left", errLeft, again, false},
		{"it failed itself", &NodeError{ID: me, What: ErrFailed}, again, false},
	} {
		n.keepConsent(before, c.cause)
		assert.Equal(t, c.want, n.hasConsent(c.next), c.name)
		assert.False(t, n.hasConsent(c.next), "%s: once", c.name)
	}
	n.keepConsent(before, lost("c"))
	n.mu.Lock()
	n.consented.until = time.Now()
	n.mu.Unlock()
	assert.False(t, n.hasConsent(again), "it expires")
}
