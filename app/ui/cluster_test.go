//go:build !headless

package ui

import (
	"errors"
	"testing"
	"time"

	"fyne.io/fyne/v2/test"
	"github.com/stretchr/testify/require"

	"daisy/app/session"
)

func TestClusterWindow(t *testing.T) {
	d := newTestDesk(t, session.Model{Name: "tiny", Path: "/models/tiny.gguf", Bytes: 1e6}, session.Model{Name: "big", Path: "/models/big.gguf", Bytes: 42e9})
	d.showCluster()
	c := d.cluster
	require.Equal(t, "Desk Mac", c.title.Text)
	require.True(t, c.peers.empty.Visible())
	d.until(t, func() bool { return c.models.choice.SelectedIndex() == 0 })
	require.Equal(t, []string{"tiny  ·  1.0 MB  ·  tiny.gguf", "big  ·  42.0 GB  ·  big.gguf"}, c.models.choice.Options)
	require.Equal(t, "Run on this Mac alone", c.join.Text)

	d.node.set(session.Peer{ID: "a", Name: "Kitchen", Ready: true}, session.Peer{ID: "b", Name: "Attic", Reason: "asleep"})
	d.until(t, func() bool { return len(c.peers.order) == 2 })
	require.False(t, c.peers.empty.Visible())
	require.False(t, c.peers.rows["a"].check.Disabled())
	require.True(t, c.peers.rows["b"].check.Disabled())
	require.Equal(t, "asleep", c.peers.rows["b"].reason.Text)

	test.Tap(c.peers.rows["a"].check)
	d.until(t, func() bool { return c.join.Text == "Join cluster" })
	c.models.choice.SetSelectedIndex(1)
	d.until(t, func() bool { return d.cfg.Cluster.State().Chosen == "/models/big.gguf" })

	test.Tap(c.join)
	d.until(t, func() bool { return c.members.box.Visible() })
	require.False(t, c.setup.Visible())
	require.False(t, c.join.Visible())
	require.Len(t, c.members.rows.Objects, 2)
	require.Equal(t, "big – on 2 Macs", c.subtitle.Text)
	require.Equal(t, "Leave cluster", c.leave.Text)
	test.Tap(c.leave)
	d.until(t, func() bool { return c.setup.Visible() && c.join.Visible() })

	// The order and the marks follow the node.
	d.node.set(session.Peer{ID: "b", Name: "Attic", Ready: true})
	d.until(t, func() bool { return len(c.peers.order) == 1 })
	require.False(t, c.peers.rows["b"].check.Disabled())
	require.Nil(t, c.peers.rows["a"])
}

func TestClusterWindowWithoutModels(t *testing.T) {
	d := newTestDesk(t)
	d.showCluster()
	c := d.cluster
	d.until(t, func() bool { return !d.cfg.Cluster.State().Listing && c.models.none.Text != "" })
	c.update()
	require.Contains(t, c.models.none.Text, "/models")
	require.True(t, c.models.none.Visible())
	require.False(t, c.models.choice.Visible())
	require.True(t, c.join.Disabled())
}

func TestClusterErrorsAreShown(t *testing.T) {
	d := newTestDesk(t)
	d.showCluster()
	d.cluster.err.show(errors.New("the cluster ended: Kitchen was lost"))
	require.True(t, d.cluster.err.box.Visible())
	d.cluster.err.show(nil)
	require.False(t, d.cluster.err.box.Visible())
}

func TestConsent(t *testing.T) {
	d := newTestDesk(t)
	for _, yes := range []bool{true, false} {
		answer := make(chan bool, 1)
		go func() {
			answer <- d.cfg.Invitations.Ask(t.Context(), session.Invitation{Leader: "Kitchen", Model: "big", Nodes: []string{"Kitchen", "Desk Mac"}})
		}()
		d.until(t, func() bool { return d.consent.win != nil })
		button := d.consent.no
		if yes {
			button = d.consent.yes
		}
		test.Tap(button)
		require.Equal(t, yes, <-answer)
		require.Nil(t, d.consent.win)
	}
}

// The question ends with the app, and the answer is no.
func TestConsentAtTheEnd(t *testing.T) {
	d := newTestDesk(t)
	answer := make(chan bool, 1)
	go func() { answer <- d.cfg.Invitations.Ask(t.Context(), session.Invitation{Leader: "Kitchen"}) }()
	d.until(t, func() bool { return d.consent.win != nil })
	d.consent.close()
	require.False(t, <-answer)
	require.False(t, d.cfg.Invitations.Ask(t.Context(), session.Invitation{}))
}

func TestMenuRows(t *testing.T) {
	newTestDesk(t) // for the language
	labels := func(s session.ClusterState) (list []string) {
		for _, r := range menuRows(s) {
			list = append(list, r.label)
		}
		return list
	}
	require.Equal(t, []string{"No model is running", "", "Chat…", "Cluster…", "", "Quit"}, labels(session.ClusterState{}))

	s := session.ClusterState{Peers: []session.PeerRow{
		{Peer: session.Peer{ID: "a", Name: "Kitchen", Ready: true}, Ticked: true},
		{Peer: session.Peer{ID: "b", Name: "Attic"}, Ticked: true},
		{Peer: session.Peer{ID: "c", Name: "Cellar"}},
	}}
	rows := menuRows(s)
	require.Equal(t, menuRow{label: "Kitchen", checked: true, action: menuPeer, peer: "a"}, rows[2])
	require.Equal(t, menuRow{label: "Attic", checked: true, action: menuNothing, peer: "b"}, rows[3])
	require.Equal(t, menuRow{}, rows[4], "the cellar is not shown")

	s.Phase = session.Joining
	s.Progress = session.Progress{Done: 57, Total: 100}
	require.Equal(t, "Loading the model: 50 %", menuRows(s)[0].label)
	require.Equal(t, menuNothing, menuRows(s)[2].action)
}

func TestWords(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 999: "999 B", 1000: "1.0 KB", 99_400: "99.4 KB", 144_811_008: "145 MB", 999_600_000: "1.0 GB", 42e9: "42.0 GB", 3e15: "3000 TB",
	} {
		require.Equal(t, want, byteWords(n))
	}
	now := time.Date(2026, 12, 1, 14, 30, 0, 0, time.Local)
	require.Equal(t, "09:05", dayWords(now.Add(-5*time.Hour-25*time.Minute), now))
	require.Equal(t, "2026-11-30", dayWords(now.Add(-24*time.Hour), now))
}
