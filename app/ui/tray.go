//go:build !headless

package ui

import (
	"fmt"
	"strings"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/driver/desktop"

	"daisy/app/session"
	"daisy/node"
)

// tray is the menu-bar menu.
type tray struct {
	desk   *desk
	bar    desktop.App
	frames *frames
	cancel func()
	shown  string // what the menu was made from
}

func newTray(d *desk, bar desktop.App) *tray {
	t := &tray{desk: d, bar: bar}
	t.frames = d.newFrames(t.update)
	t.update()
	bar.SetSystemTrayIcon(trayIcon()) // after the menu, as the toolkit asks
	t.cancel = d.cfg.Cluster.Subscribe(t.frames.signal)
	return t
}

func (t *tray) close() {
	t.cancel()
	t.frames.stop()
}

// update makes the menu anew when it would differ. Each new one costs the
// toolkit a goroutine per item for as long as the app runs, so progress is
// shown in coarse steps.
func (t *tray) update() {
	state := t.desk.cfg.Cluster.State()
	rows := menuRows(state)
	var key strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&key, "%s %s %v %v\n", r.label, r.peer, r.checked, r.action)
	}
	if key.String() == t.shown {
		return
	}
	t.shown = key.String()
	items := make([]*fyne.MenuItem, 0, len(rows))
	for _, r := range rows {
		items = append(items, t.item(r))
	}
	t.bar.SetSystemTrayMenu(fyne.NewMenu(appName, items...))
}

func (t *tray) item(r menuRow) *fyne.MenuItem {
	if r.label == "" {
		return fyne.NewMenuItemSeparator()
	}
	item := fyne.NewMenuItem(r.label, nil)
	item.Checked = r.checked
	switch r.action {
	case menuNothing:
		item.Disabled = true
		item.Action = func() {}
	case menuPeer:
		item.Action = func() { t.desk.cfg.Cluster.Tick(r.peer, !r.checked) }
	case menuChat:
		item.Action = t.desk.showChat
	case menuCluster:
		item.Action = t.desk.showCluster
	case menuQuit:
		item.IsQuit = true
		item.Action = t.desk.quit
	}
	return item
}

type menuAction int

const (
	menuNothing menuAction = iota
	menuPeer
	menuChat
	menuCluster
	menuQuit
)

// menuRow is a line of the menu; without a label it is a separator.
type menuRow struct {
	label   string
	checked bool
	action  menuAction
	peer    string // ID, with menuPeer
}

// menuRows is the menu for a state. Macs that cannot take part are in the
// cluster window only, so that the menu is short and still.
func menuRows(s session.ClusterState) []menuRow {
	rows := []menuRow{{label: stateWords(s, 10)}, {}}
	for _, p := range s.Peers {
		if !p.Ready && !p.Member && !p.Ticked {
			continue
		}
		r := menuRow{label: p.Name, checked: p.Ticked || p.Member, peer: p.ID}
		if p.Ready && s.Phase == session.Alone {
			r.action = menuPeer
		}
		rows = append(rows, r)
	}
	if len(rows) > 2 {
		rows = append(rows, menuRow{})
	}
	return append(rows,
		menuRow{label: tr("menu.chat"), action: menuChat},
		menuRow{label: tr("menu.cluster"), action: menuCluster},
		menuRow{},
		menuRow{label: tr("Quit"), action: menuQuit},
	)
}

// stateWords is where this Mac stands, in a line; progress in steps of percent.
func stateWords(s session.ClusterState, step int) string {
	switch s.Phase {
	case session.Joining:
		if p := s.Progress; p.Total > 0 && p.Stage != string(node.StageInviting) {
			percent := int(min(100, 100*p.Done/p.Total)) / step * step
			return tr("state.loading", args{"Percent": percent})
		}
		if len(s.Peers) == 0 || s.Ticked() == 0 {
			return tr("state.starting")
		}
		return tr("state.joining")
	case session.Leaving:
		return tr("state.leaving")
	case session.Joined:
		if n := len(s.Members); n > 1 {
			return s.Model + " – " + trn("state.on_macs", n)
		}
		return s.Model + " – " + tr("state.on_this_mac")
	default:
		return tr("state.alone")
	}
}
