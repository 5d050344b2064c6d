//go:build !headless

package ui

import (
	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"

	"daisy/app/session"
)

// pairWindow shows the six digits of a pairing, in a window of its own that is
// in front of whatever is open.
type pairWindow struct {
	desk   *desk
	frames *frames
	cancel func()
	win    fyne.Window       // nil while there is no pairing
	shown  session.PairState // in win, but for Err
	err    string            // in win

	digits  *widget.Label
	no, yes *widget.Button // either may be nil
}

func newPairWindow(d *desk) *pairWindow {
	p := &pairWindow{desk: d}
	p.frames = d.newFrames(p.update)
	p.cancel = d.cfg.Pairings.Subscribe(p.frames.signal)
	p.update()
	return p
}

// close refuses what was not settled.
func (p *pairWindow) close() {
	p.cancel()
	p.frames.stop()
	p.desk.cfg.Pairings.Refuse()
}

// update shows the pairing as it stands.
func (p *pairWindow) update() {
	s := p.desk.cfg.Pairings.State()
	err, what := "", s
	if s.Err != nil {
		err, what.Err = errorWords(s.Err), nil
	}
	if what == p.shown && err == p.err {
		return
	}
	p.shown, p.err = what, err
	if s.Phase == session.NoPairing {
		if p.win != nil {
			p.win.Close()
			p.win = nil
		}
		return
	}
	fresh := p.win == nil
	if fresh {
		p.win = p.desk.fyne.NewWindow(tr("pair.window"))
		p.win.SetPadded(false)
		p.win.SetFixedSize(true)
		p.win.SetCloseIntercept(p.refuse)
	}
	content := padded(16, container.New(stack{}, p.content(s)...))
	// Wrapped text knows its height only once it has its width.
	const width = 480
	size := fyne.NewSize(width, 0)
	for range 3 {
		size.Height = content.MinSize().Height
		content.Resize(size)
	}
	p.win.SetContent(container.New(fixedSize(size), content))
	p.win.Resize(size)
	if fresh {
		p.win.CenterOnScreen()
		p.desk.show(p.win)
	}
}

func (p *pairWindow) refuse() {
	p.desk.cfg.Pairings.Refuse()
	p.update()
}

func (p *pairWindow) confirm() {
	p.desk.cfg.Pairings.Confirm()
	p.update()
}

// content is what the window shows of a state.
func (p *pairWindow) content(s session.PairState) (list []fyne.CanvasObject) {
	p.no, p.yes, p.digits = nil, nil, nil
	name := args{"Name": s.Name}
	say := func(words string, size fyne.ThemeSizeName, importance widget.Importance) {
		list = append(list, text(words, size, importance))
	}
	title := func(key string) {
		t := text(tr(key, name), sizeTitle, widget.MediumImportance)
		t.TextStyle.Bold = true
		list = append(list, t)
	}
	buttons := func(all ...fyne.CanvasObject) {
		list = append(list, padded(4, container.NewGridWithColumns(len(all), all...)))
	}
	switch s.Phase {
	case session.Reaching:
		title("pair.reaching")
		p.no = widget.NewButton(tr("Cancel"), p.refuse)
		buttons(p.no)
	case session.Comparing, session.Waiting:
		key := "pair.title_out"
		if s.Incoming {
			key = "pair.title_in"
		}
		title(key)
		p.digits = line(s.Digits[:3]+" "+s.Digits[3:], sizeDigits, widget.MediumImportance)
		p.digits.Alignment = fyne.TextAlignCenter
		p.digits.TextStyle = fyne.TextStyle{Bold: true, Monospace: true}
		list = append(list, padded(10, p.digits))
		if s.SameName {
			say(tr("pair.same_name", name), theme.SizeNameText, widget.WarningImportance)
		}
		if s.Phase == session.Waiting {
			say(tr("pair.waiting", name), theme.SizeNameText, widget.MediumImportance)
			p.no = widget.NewButton(tr("Cancel"), p.refuse)
			buttons(p.no)
			break
		}
		say(tr("pair.question", name), theme.SizeNameText, widget.MediumImportance)
		if s.Theirs {
			say(tr("pair.theirs", name), theme.SizeNameText, widget.MediumImportance)
		}
		say(tr("pair.warning"), sizeSmall, widget.LowImportance)
		p.no = widget.NewButton(tr("pair.no"), p.refuse)
		p.yes = widget.NewButton(tr("pair.yes"), p.confirm)
		p.yes.Importance = widget.HighImportance
		buttons(p.no, p.yes)
	case session.Paired:
		title("pair.done")
		say(tr("pair.done_note"), theme.SizeNameText, widget.MediumImportance)
		p.yes = widget.NewButton(tr("OK"), p.refuse)
		p.yes.Importance = widget.HighImportance
		buttons(p.yes)
	case session.NotPaired:
		title("pair.failed")
		say(p.err, theme.SizeNameText, widget.DangerImportance)
		p.no = widget.NewButton(tr("OK"), p.refuse)
		buttons(p.no)
	}
	return list
}
