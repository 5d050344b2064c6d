//go:build !headless

package ui

import (
	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/widget"

	"daisy/app/history"
)

const (
	columnWidth  = 720 // of text: about 90 characters, which still read well
	sidebarWidth = 248
	firstRows    = 40 // messages that are shown before "earlier" is asked for
)

// thread shows the messages of one conversation and stays at the end while the
// person is there.
type thread struct {
	box     *fyne.Container
	scroll  *container.Scroll
	copied  func(string)
	earlier *widget.Button
	hidden  []history.Message // older than the rows
	rows    []*messageRow
	follow  bool // keep the end in view
}

func newThread(copied func(string)) *thread {
	t := &thread{copied: copied, follow: true}
	t.earlier = widget.NewButton(tr("chat.earlier"), t.showEarlier)
	t.earlier.Importance = widget.LowImportance
	t.box = container.New(column{maxWidth: columnWidth, gap: 10, margin: 16}, t.earlier)
	t.scroll = container.NewVScroll(t.box)
	t.scroll.OnScrolled = func(fyne.Position) { t.follow = t.atEnd() }
	return t
}

// atEnd is true within a line of the end.
func (t *thread) atEnd() bool {
	return t.scroll.Offset.Y+t.scroll.Size().Height >= t.scroll.Content.Size().Height-24
}

// set shows a conversation from its end.
func (t *thread) set(messages []history.Message) {
	cut := max(0, len(messages)-firstRows)
	t.hidden, t.rows = messages[:cut], nil
	for _, m := range messages[cut:] {
		t.rows = append(t.rows, t.row(m))
	}
	t.follow = true
	t.rebuild()
}

func (t *thread) showEarlier() {
	cut := max(0, len(t.hidden)-firstRows)
	var older []*messageRow
	for _, m := range t.hidden[cut:] {
		older = append(older, t.row(m))
	}
	t.hidden, t.rows = t.hidden[:cut], append(older, t.rows...)
	fromEnd := t.scroll.Content.Size().Height - t.scroll.Offset.Y
	t.rebuild()
	t.scroll.ScrollToOffset(fyne.NewPos(0, t.scroll.Content.Size().Height-fromEnd))
}

func (t *thread) rebuild() {
	objects := []fyne.CanvasObject{t.earlier}
	for _, r := range t.rows {
		objects = append(objects, r.box)
	}
	visible(t.earlier, len(t.hidden) > 0)
	t.box.Objects = objects
	t.box.Refresh()
	t.settle()
}

func (t *thread) row(m history.Message) *messageRow {
	if m.Role == history.RoleUser {
		return newQuestionRow(m)
	}
	return newAnswerRow(m, t.copied)
}

// put adds a message or brings its row up to date.
func (t *thread) put(m history.Message) {
	for i := len(t.rows) - 1; i >= 0; i-- {
		if t.rows[i].id == m.ID {
			if m.Role != history.RoleUser {
				t.rows[i].show(m)
			}
			return
		}
	}
	r := t.row(m)
	t.rows = append(t.rows, r)
	t.box.Objects = append(t.box.Objects, r.box)
}

// settle lays out what has changed and follows the end when it should. It
// refreshes nothing: that would draw the whole thread anew for each piece of
// text. Two rounds, since wrapped text knows its height only after its width.
func (t *thread) settle() {
	follow := t.follow
	for range 2 {
		t.box.Layout.Layout(t.box.Objects, t.box.Size())
		t.box.Resize(t.box.MinSize().Max(t.scroll.Size()))
	}
	if follow {
		t.scroll.ScrollToBottom()
		t.follow = true
	}
}

func (t *thread) empty() bool { return len(t.rows) == 0 }
