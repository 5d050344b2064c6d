//go:build !headless

package ui

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"fyne.io/fyne/v2/test"
	"github.com/stretchr/testify/require"

	"daisy/app/history"
	"daisy/app/session"
	"daisy/inference"
)

// testDesk is the app on fyne's test driver. What fyne would run on its own
// goroutine waits in a queue until the test's goroutine runs it.
type testDesk struct {
	*desk
	store *history.Store
	node  *stillNode
	pairs *stillPairer
	queue chan func()
}

// stillNode is a node without a network, for what windows show of it.
type stillNode struct {
	mu      sync.Mutex // guards the fields below
	peers   []session.Peer
	changed func(*session.Progress)
	group   session.Group
	chat    chatFunc // of groups; nil answers nothing
}

type chatFunc func(context.Context, inference.Request, func(inference.Delta)) (inference.Stats, error)

func (n *stillNode) Self() session.Peer { return session.Peer{ID: "self", Name: "Desk Mac"} }

func (n *stillNode) Peers() []session.Peer {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.peers
}

func (n *stillNode) set(peers ...session.Peer) {
	n.mu.Lock()
	n.peers = peers
	n.mu.Unlock()
	n.changed(nil)
}

func (n *stillNode) Subscribe(changed func(*session.Progress)) func() {
	n.changed = changed
	return func() {}
}

func (n *stillNode) Group() session.Group { return n.group }

func (n *stillNode) Join(_ context.Context, members []string, model session.Model) (session.Group, error) {
	return &stillGroup{members: members, model: model.Name, chat: n.chat, done: make(chan struct{})}, nil
}

type stillGroup struct {
	members []string
	model   string
	chat    chatFunc
	once    sync.Once
	done    chan struct{}
}

func (g *stillGroup) Chat(ctx context.Context, r inference.Request, emit func(inference.Delta)) (inference.Stats, error) {
	if g.chat == nil {
		return inference.Stats{}, nil
	}
	return g.chat(ctx, r, emit)
}
func (g *stillGroup) Epoch() uint64    { return 1 }
func (g *stillGroup) Leader() string   { return "self" }
func (g *stillGroup) Model() string    { return g.model }
func (g *stillGroup) NoTemplate() bool { return g.model == "plain" }
func (g *stillGroup) Members() []session.Member {
	list := []session.Member{{ID: "self", Name: "Desk Mac", WeightBytes: 10}}
	for i, id := range g.members {
		list = append(list, session.Member{ID: id, Name: id, Rank: i + 1, WeightBytes: 10})
	}
	return list
}
func (g *stillGroup) Done() <-chan struct{} { return g.done }
func (g *stillGroup) Err() error            { return nil }
func (g *stillGroup) Close() error          { g.once.Do(func() { close(g.done) }); return nil }

type shelf []session.Model

func (s shelf) List() ([]session.Model, error) { return s, nil }
func (s shelf) Add(p string) (string, error)   { return p, nil }
func (s shelf) Folder() string                 { return "/models" }

func newTestDesk(t *testing.T, models ...session.Model) *testDesk {
	t.Helper()
	t.Setenv("LANGUAGE", "")
	t.Setenv("LC_ALL", "en_US.UTF-8")
	store, err := history.Open(t.Context(), filepath.Join(t.TempDir(), "h.db"))
	require.NoError(t, err)
	s := session.New(session.Config{Store: store})
	node := &stillNode{}
	cluster := session.NewCluster(node, shelf(models), s)
	pairer := &stillPairer{}
	pairings := session.NewPairings(pairer, func(id string) { cluster.Tick(id, true) })
	app := test.NewTempApp(t)
	require.NoError(t, loadTranslations())
	d := &testDesk{
		desk:  newDesk(t.Context(), Config{Session: s, Cluster: cluster, Invitations: &session.Invitations{}, Pairings: pairings}, app),
		store: store, node: node, pairs: pairer, queue: make(chan func(), 4096),
	}
	d.do = func(f func()) { d.queue <- f }
	d.consent = newConsent(d.desk)
	d.pairing = newPairWindow(d.desk)
	t.Cleanup(func() {
		s.Close()
		require.NoError(t, cluster.Close())
		d.down.Store(true)
		d.close()
		pairings.Close()
		d.wg.Wait()
		require.NoError(t, store.Close())
	})
	return d
}

// until runs what is queued until ok is true.
func (d *testDesk) until(t *testing.T, ok func() bool) {
	t.Helper()
	limit := time.After(20 * time.Second)
	for !ok() {
		select {
		case f := <-d.queue:
			f()
		case <-limit:
			require.FailNow(t, "it did not come")
		}
	}
}
