//go:build !headless

package ui

import (
	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"

	"daisy/app/session"
)

// clusterWindow lists the Macs found and begins or leaves a cluster.
type clusterWindow struct {
	desk   *desk
	win    fyne.Window
	frames *frames
	cancel []func()

	title    *widget.Label
	subtitle *widget.Label
	peers    *peerList
	models   *modelPick
	friends  *friendList
	members  *memberList
	progress *progressLine
	err      *errorLine
	join     *widget.Button
	leave    *widget.Button
	setup    *fyne.Container // what is shown while this Mac is in no cluster
}

func newClusterWindow(d *desk) *clusterWindow {
	c := &clusterWindow{desk: d, win: d.window(tr("cluster.window"))}
	c.frames = d.newFrames(c.update)
	c.title = line("", sizeTitle, widget.MediumImportance)
	c.title.TextStyle.Bold = true
	c.subtitle = text("", theme.SizeNameText, widget.LowImportance)
	c.peers = newPeerList(c.tick)
	c.models = newModelPick(c.win, d)
	c.members = newMemberList()
	c.friends = newFriendList(c.win, d.cfg.Pairings)
	c.progress = newProgressLine()
	c.err = newErrorLine()
	c.join = widget.NewButton("", d.cfg.Cluster.Join)
	c.join.Importance = widget.HighImportance
	c.leave = widget.NewButton("", d.cfg.Cluster.Leave)

	c.setup = container.NewVBox(
		heading(tr("cluster.macs")), card(c.peers.box),
		gap(6),
		heading(tr("cluster.model")), card(c.models.box),
	)
	body := container.New(column{maxWidth: 560, gap: 4, margin: 18},
		c.title, c.subtitle, gap(4), c.setup, c.members.box, c.friends.box)
	foot := container.New(column{maxWidth: 560, gap: 4, margin: 14},
		c.err.box, c.progress.box, container.NewGridWithRows(1, c.leave, c.join))
	c.win.SetContent(container.NewBorder(nil,
		container.NewStack(newPanel(colorSidebar, "", 0), foot), nil, nil,
		container.NewVScroll(body)))
	c.win.SetPadded(false)
	c.win.Resize(fyne.NewSize(560, 600))
	c.update()
	c.cancel = []func(){d.cfg.Cluster.Subscribe(c.frames.signal), d.cfg.Pairings.Subscribe(c.frames.signal)}
	return c
}

func (c *clusterWindow) close() {
	for _, cancel := range c.cancel {
		cancel()
	}
	c.frames.stop()
}

// tick wants a Mac in the next cluster. One that is not paired is paired first;
// it is ticked when that has come about.
func (c *clusterWindow) tick(id string, on bool) {
	for _, p := range c.desk.cfg.Cluster.State().Peers {
		if on && p.ID == id && pairable(p.Peer) {
			c.desk.cfg.Pairings.Begin(id, p.Name)
			c.peers.rows[id].show(p, true) // not ticked yet
			return
		}
	}
	c.desk.cfg.Cluster.Tick(id, on)
}

// update shows the state as it is now.
func (c *clusterWindow) update() {
	s := c.desk.cfg.Cluster.State()
	c.title.SetText(s.Self.Name)
	c.subtitle.SetText(stateWords(s, 1))
	c.peers.show(s)
	c.models.show(s)
	c.members.show(s)
	c.friends.show()
	c.progress.show(s)
	c.err.show(s.Err)
	visible(c.setup, s.Phase != session.Joined)

	visible(c.join, s.Phase == session.Alone)
	if s.Ticked() > 0 {
		c.join.SetText(tr("cluster.join"))
	} else {
		c.join.SetText(tr("cluster.join_alone"))
	}
	enabled(c.join, s.Chosen != "")

	visible(c.leave, s.Phase != session.Alone)
	switch s.Phase {
	case session.Joining:
		c.leave.SetText(tr("Cancel"))
	case session.Joined:
		if len(s.Members) > 1 {
			c.leave.SetText(tr("cluster.leave"))
		} else {
			c.leave.SetText(tr("cluster.unload"))
		}
	case session.Leaving:
		c.leave.SetText(tr("state.leaving"))
	}
	enabled(c.leave, s.Phase != session.Leaving)
}

func visible(o fyne.CanvasObject, yes bool) {
	switch {
	case yes && !o.Visible():
		o.Show()
	case !yes && o.Visible():
		o.Hide()
	}
}

func enabled(o fyne.Disableable, yes bool) {
	switch {
	case yes && o.Disabled():
		o.Enable()
	case !yes && !o.Disabled():
		o.Disable()
	}
}

// card is a box around related things.
func card(o fyne.CanvasObject) *fyne.Container {
	return container.NewStack(newPanel(colorCard, colorLine, 10), padded(6, o))
}

// gap is empty room of a height.
func gap(height float32) fyne.CanvasObject {
	return container.New(inset{top: height})
}
