//go:build !headless

package ui

import (
	"image/color"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"

	"daisy/app/session"
)

// peerList shows the Macs found, each with a tick box and its state in words.
type peerList struct {
	box   *fyne.Container
	empty *widget.Label
	rows  map[string]*peerRow // by ID
	order []string
	tick  func(id string, on bool)
}

type peerRow struct {
	box    *fyne.Container
	check  *widget.Check
	dot    *canvas.Circle
	reason *widget.Label
}

func newPeerList(tick func(string, bool)) *peerList {
	l := &peerList{
		empty: text(tr("cluster.no_macs"), theme.SizeNameText, widget.LowImportance),
		rows:  map[string]*peerRow{},
		tick:  tick,
	}
	l.box = container.NewVBox(l.empty)
	return l
}

func (l *peerList) show(s session.ClusterState) {
	changed := len(s.Peers) != len(l.order)
	for i, p := range s.Peers {
		if l.rows[p.ID] == nil {
			l.rows[p.ID] = l.row(p.ID)
		}
		l.rows[p.ID].show(p, s.Phase == session.Alone)
		changed = changed || l.order[i] != p.ID
	}
	if !changed {
		return
	}
	l.order = l.order[:0]
	objects := []fyne.CanvasObject{l.empty}
	kept := map[string]*peerRow{}
	for _, p := range s.Peers {
		l.order = append(l.order, p.ID)
		kept[p.ID] = l.rows[p.ID]
		objects = append(objects, l.rows[p.ID].box)
	}
	l.rows = kept
	visible(l.empty, len(s.Peers) == 0)
	l.box.Objects = objects
	l.box.Refresh()
}

func (l *peerList) row(id string) *peerRow {
	r := &peerRow{
		dot:    canvas.NewCircle(color.Transparent),
		reason: text("", sizeSmall, widget.LowImportance),
	}
	r.check = widget.NewCheck("", func(on bool) { l.tick(id, on) })
	dot := container.NewCenter(container.NewGridWrap(fyne.NewSize(9, 9), r.dot))
	r.box = container.New(stack{},
		container.NewBorder(nil, nil, nil, padded(6, dot), r.check),
		container.New(inset{top: -8, left: 27}, r.reason)) // below the name, close to it
	return r
}

func (r *peerRow) show(p session.PeerRow, choosable bool) {
	if r.check.Text != p.Name {
		r.check.Text = p.Name
		r.check.Refresh()
	}
	if on := p.Ticked || p.Member; r.check.Checked != on {
		changed := r.check.OnChanged
		r.check.OnChanged = nil // the model knows already
		r.check.SetChecked(on)
		r.check.OnChanged = changed
	}
	enabled(r.check, (p.Ready || pairable(p.Peer)) && choosable)
	if words := peerWords(p.Peer); r.reason.Text != words {
		r.reason.SetText(words)
	}
	name := theme.ColorNameDisabled
	if p.Ready || p.Member {
		name = theme.ColorNameSuccess
	}
	r.dot.FillColor = theme.Color(name)
	r.dot.Refresh()
}
