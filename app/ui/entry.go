//go:build !headless

package ui

import (
	"strings"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/driver/desktop"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"
)

const entryRows = 8 // before the input scrolls

// promptEntry is a text input that sends on Enter and breaks the line on Shift
// and Enter; it grows with its text.
type promptEntry struct {
	widget.Entry
	onSend func()
	onStop func() // Escape
	shift  bool
	rows   int
}

func newPromptEntry(onSend, onStop func()) *promptEntry {
	e := &promptEntry{onSend: onSend, onStop: onStop, rows: 1}
	e.ExtendBaseWidget(e)
	e.MultiLine = true
	e.Wrapping = fyne.TextWrapWord
	e.Scroll = fyne.ScrollVerticalOnly
	e.SetMinRowsVisible(1)
	e.SetPlaceHolder(tr("chat.placeholder"))
	e.OnChanged = func(string) { e.grow() }
	return e
}

func (e *promptEntry) KeyDown(key *fyne.KeyEvent) {
	if key.Name == desktop.KeyShiftLeft || key.Name == desktop.KeyShiftRight {
		e.shift = true
	}
	e.Entry.KeyDown(key)
}

func (e *promptEntry) KeyUp(key *fyne.KeyEvent) {
	if key.Name == desktop.KeyShiftLeft || key.Name == desktop.KeyShiftRight {
		e.shift = false
	}
	e.Entry.KeyUp(key)
}

func (e *promptEntry) FocusLost() {
	e.shift = false // its key-up goes elsewhere
	e.Entry.FocusLost()
}

func (e *promptEntry) TypedKey(key *fyne.KeyEvent) {
	switch key.Name {
	case fyne.KeyReturn, fyne.KeyEnter:
		if !e.shift {
			e.onSend()
			return
		}
	case fyne.KeyEscape:
		e.onStop()
		return
	}
	e.Entry.TypedKey(key)
}

// grow fits the height to the text.
func (e *promptEntry) grow() {
	width := e.Size().Width - 4*theme.Size(theme.SizeNameInnerPadding)
	if rows := min(entryRows, rowsNeeded(e.Text, width)); rows != e.rows {
		e.rows = rows
		e.SetMinRowsVisible(rows)
	}
}

// rowsNeeded estimates how many rows the text takes when wrapped at width.
func rowsNeeded(s string, width float32) int {
	rows := 0
	size := theme.Size(theme.SizeNameText)
	for part := range strings.SplitSeq(s, "\n") {
		rows++
		if width > 0 && len(part) > 10 {
			rows += int(fyne.MeasureText(part, size, fyne.TextStyle{}).Width / width)
		}
		if rows >= entryRows {
			break
		}
	}
	return rows
}
