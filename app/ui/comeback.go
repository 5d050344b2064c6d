//go:build !headless

package ui

import (
	"context"
	"errors"
	"slices"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"

	"daisy/app/history"
	"daisy/app/session"
)

// backWithin is how long a chat that was cut off waits for its cluster before
// the person is asked.
const backWithin = time.Minute

// comeBack is the line that says that the app died and came back, and what
// becomes of the answer that was cut off then.
type comeBack struct {
	chat  *chatWindow
	box   *fyne.Container
	label *widget.Label
	again *widget.Button

	standing session.Standing
	pending  bool    // the cluster that was is not there yet
	cut      []int64 // conversations whose answers are to go on
}

func newComeBack(c *chatWindow) *comeBack {
	b := &comeBack{chat: c, label: text("", theme.SizeNameText, widget.MediumImportance)}
	b.again = widget.NewButton(tr("back.continue"), b.pressed)
	b.again.Importance = widget.HighImportance
	b.again.Hide()
	hide := widget.NewButtonWithIcon("", theme.CancelIcon(), b.hide)
	hide.Importance = widget.LowImportance
	icon := container.NewVBox(padded(8, widget.NewIcon(theme.InfoIcon())))
	b.box = container.NewBorder(nil, nil, icon, container.NewVBox(container.NewHBox(b.again, hide)), b.label)
	b.box.Hide()
	return b
}

func (b *comeBack) hide() { b.box.Hide() }

// say shows words, and the button where the person has to say what next.
func (b *comeBack) say(words string, ask bool) {
	b.label.SetText(tr("back.happened") + " " + words)
	visible(b.again, ask)
	visible(b.box, true)
}

// begin puts the window where it was and goes on with what was cut off.
func (b *comeBack) begin(s session.Standing) {
	b.standing, b.pending = s, s.Model != ""
	if s.Conversation != 0 {
		b.chat.open(s.Conversation)
	}
	b.say("", false)
	d := b.chat.desk
	d.later(func() func() {
		var cut []int64
		for _, id := range append([]int64{s.Conversation}, s.Running...) {
			// A conversation that cannot be read says so when it is opened.
			if yes, err := d.cfg.Session.CutOff(d.ctx, id); err == nil && yes && !slices.Contains(cut, id) {
				cut = append(cut, id)
			}
		}
		return func() {
			b.cut = cut
			if b.pending {
				b.rejoin(s, backWithin)
			}
		}
	})
}

// rejoin waits for the cluster, and then the answers go on.
func (b *comeBack) rejoin(s session.Standing, limit time.Duration) {
	d := b.chat.desk
	if len(b.cut) > 0 {
		b.say(tr("back.waiting"), false)
	}
	d.later(func() func() {
		ctx, cancel := context.WithTimeout(d.ctx, limit)
		defer cancel()
		err := d.cfg.Cluster.Rejoin(ctx, s)
		return func() { b.rejoined(err) }
	})
}

func (b *comeBack) rejoined(err error) {
	b.pending = false
	d := b.chat.desk
	d.stand()
	switch {
	case err != nil && len(b.cut) > 0:
		b.say(tr("back.late"), true)
	case err == nil && len(b.cut) > 0:
		b.say(tr("back.going"), false)
		for _, id := range b.cut {
			d.cfg.Session.Continue(id, b.chat.live.observe, func(err error) {
				if !errors.Is(err, history.ErrComplete) { // else the chat has gone on by itself
					d.onMain(func() { b.chat.notice.show(err) })
				}
			})
		}
		b.cut = nil
		b.chat.updateButtons()
	}
}

// pressed goes on with the Macs that are there.
func (b *comeBack) pressed() {
	s := b.standing
	s.Members = nil
	for _, p := range b.chat.desk.cfg.Cluster.State().Peers {
		if p.Ready && slices.Contains(b.standing.Members, p.ID) {
			s.Members = append(s.Members, p.ID)
		}
	}
	b.pending = true
	b.rejoin(s, backWithin)
}

// stand tells how the app stands, for the start after a fault.
func (d *desk) stand() {
	if d.cfg.Keep == nil {
		return
	}
	s := session.Standing{Running: d.cfg.Session.Answering()}
	if d.chat != nil {
		s.Chat = d.chat.win.Content().Visible()
		s.Conversation = d.chat.current
	}
	if d.cluster != nil {
		s.Cluster = d.cluster.win.Content().Visible()
	}
	state := d.cfg.Cluster.State()
	switch {
	case d.chat != nil && d.chat.back.pending:
		was := d.chat.back.standing
		s.Running, s.Model, s.Members = was.Running, was.Model, was.Members
	case state.Phase == session.Joined && state.Leading:
		s.Model = state.Chosen
		for _, m := range state.Members {
			if m.ID != state.Self.ID {
				s.Members = append(s.Members, m.ID)
			}
		}
	case state.Phase == session.Joining:
		s.Model = state.Chosen
		for _, p := range state.Peers {
			if p.Ticked && p.Ready {
				s.Members = append(s.Members, p.ID)
			}
		}
	}
	d.cfg.Keep(s)
}

// comeBack shows the windows that were open when the app died.
func (d *desk) comeBack(s session.Standing) {
	// The chat window is made in any case: it holds what there is to go on with.
	if d.chat == nil {
		d.chat = newChatWindow(d)
	}
	d.chat.back.begin(s) // before anything is told of how the app stands now
	if s.Chat || len(s.Running) > 0 || d.tray == nil && !s.Cluster {
		d.show(d.chat.win)
	}
	if s.Cluster {
		d.showCluster()
	}
}
