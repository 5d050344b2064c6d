//go:build !headless

package ui

import (
	"strings"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"

	"daisy/app/session"
)

// consent asks the person whether this Mac may join, in a window of its own
// that is in front of whatever is open.
type consent struct {
	desk   *desk
	frames *frames
	win    fyne.Window // nil while nothing is asked
	asked  int64       // ID of the invitation in win
	no     *widget.Button
	yes    *widget.Button
}

func newConsent(d *desk) *consent {
	c := &consent{desk: d}
	c.frames = d.newFrames(c.update)
	d.cfg.Invitations.Notify(c.frames.signal)
	return c
}

// close says no to what was not answered.
func (c *consent) close() {
	c.desk.cfg.Invitations.Notify(nil)
	c.frames.stop()
	for _, in := range c.desk.cfg.Invitations.Pending() {
		c.desk.cfg.Invitations.Answer(in.ID, false)
	}
}

func (c *consent) update() {
	pending := c.desk.cfg.Invitations.Pending()
	if c.win != nil && (len(pending) == 0 || pending[0].ID != c.asked) {
		c.win.Close()
		c.win = nil
	}
	if c.win == nil && len(pending) > 0 {
		c.ask(pending[0])
	}
}

func (c *consent) ask(in session.Invitation) {
	c.asked = in.ID
	c.win = c.desk.fyne.NewWindow(tr("consent.window"))
	answer := func(yes bool) func() {
		return func() {
			c.desk.cfg.Invitations.Answer(in.ID, yes)
			c.update()
		}
	}
	c.no = widget.NewButton(tr("consent.no"), answer(false))
	c.yes = widget.NewButton(tr("consent.yes"), answer(true))
	c.yes.Importance = widget.HighImportance

	title := text(tr("consent.title", args{"Leader": in.Leader}), sizeTitle, widget.MediumImportance)
	title.TextStyle.Bold = true
	warning := container.NewBorder(nil, nil, widget.NewIcon(theme.NewWarningThemedResource(theme.VisibilityIcon())), nil,
		text(tr("consent.prompts"), theme.SizeNameText, widget.MediumImportance))
	content := padded(16, container.New(stack{},
		title,
		text(tr("consent.model", args{"Model": in.Model, "Size": byteWords(in.Bytes)}), theme.SizeNameText, widget.MediumImportance),
		text(tr("consent.nodes", args{"Nodes": strings.Join(in.Nodes, ", ")}), theme.SizeNameText, widget.MediumImportance),
		warning,
		text(tr("consent.memory"), sizeSmall, widget.LowImportance),
		padded(4, container.NewGridWithColumns(2, c.no, c.yes)),
	))
	// Wrapped text knows its height only once it has its width.
	const width = 460
	size := fyne.NewSize(width, 0)
	for range 3 {
		size.Height = content.MinSize().Height
		content.Resize(size)
	}
	c.win.SetContent(container.New(fixedSize(size), content))
	c.win.SetPadded(false)
	c.win.SetCloseIntercept(answer(false))
	c.win.Resize(size)
	c.win.SetFixedSize(true)
	c.win.CenterOnScreen()
	c.win.Show()
	c.win.RequestFocus()
}
