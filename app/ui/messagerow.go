//go:build !headless

package ui

import (
	"strings"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"

	"daisy/app/history"
)

// messageRow shows one message.
type messageRow struct {
	box    *fyne.Container
	id     int64
	copied func(text string)

	// Of an answer:
	message   history.Message
	name      *widget.Label
	thought   *widget.Button
	reasoning *textBlocks
	body      *textBlocks
	waiting   *widget.Label
	err       *errorLine
	foot      *fyne.Container
	stats     *widget.Label
}

// newQuestionRow shows what the person wrote, as a bubble at the right.
func newQuestionRow(m history.Message) *messageRow {
	label := text(m.Content, theme.SizeNameText, widget.MediumImportance)
	label.Selectable = true
	natural := func() float32 {
		size := theme.Size(theme.SizeNameText)
		var w float32
		for s := range strings.Lines(m.Content) {
			w = max(w, fyne.MeasureText(strings.TrimRight(s, "\n"), size, fyne.TextStyle{}).Width)
		}
		return w + 2*theme.Size(theme.SizeNameInnerPadding) + 14
	}
	bubble := container.NewStack(newPanel(colorBubble, "", 12), container.New(inset{2, 6, 2, 6}, label))
	return &messageRow{
		box: container.New(trailing{natural, 0.85}, bubble),
		id:  m.ID,
	}
}

// newAnswerRow shows what the model writes, over the whole column.
func newAnswerRow(m history.Message, copied func(string)) *messageRow {
	r := &messageRow{id: m.ID, copied: copied}
	r.name = line("", sizeSmall, widget.LowImportance)
	r.reasoning = newTextBlocks(widget.LowImportance)
	r.thought = widget.NewButtonWithIcon("", theme.MenuExpandIcon(), r.toggleThought)
	r.thought.Importance = widget.LowImportance
	r.thought.Alignment = widget.ButtonAlignLeading
	r.body = newTextBlocks(widget.MediumImportance)
	r.waiting = line(tr("answer.waiting"), theme.SizeNameText, widget.LowImportance)
	r.err = newErrorLine()
	r.stats = line("", sizeSmall, widget.LowImportance)
	copyButton := widget.NewButtonWithIcon("", theme.ContentCopyIcon(), func() { r.copied(r.message.Content) })
	copyButton.Importance = widget.LowImportance
	r.foot = container.NewBorder(nil, nil, copyButton, nil, r.stats)
	r.box = container.New(stack{}, r.name, container.NewHBox(r.thought), r.reasoning.box, r.body.box, r.waiting, r.err.box, r.foot)
	r.reasoning.box.Hide()
	r.show(m)
	return r
}

func (r *messageRow) toggleThought() {
	visible(r.reasoning.box, !r.reasoning.box.Visible())
	r.thoughtIcon()
	r.box.Refresh()
}

func (r *messageRow) thoughtIcon() {
	icon := theme.MenuExpandIcon()
	if r.reasoning.box.Visible() {
		icon = theme.MenuDropDownIcon()
	}
	r.thought.SetIcon(icon)
}

// show brings the row to the message's state. Text that is there already is
// not laid out again.
func (r *messageRow) show(m history.Message) {
	r.message = m
	streaming := m.Status == history.StatusStreaming
	if r.name.Text != m.Model {
		r.name.SetText(m.Model)
	}
	visible(r.name, m.Model != "")
	body := strings.TrimRight(m.Content, " \n") // no gap at the end
	r.body.show(body)
	visible(r.body.box, body != "")
	if m.Reasoning != "" {
		r.reasoning.show(m.Reasoning)
		words := tr("answer.thought")
		if streaming && m.Content == "" {
			words = tr("answer.thinking")
		}
		if r.thought.Text != words {
			r.thought.SetText(words)
		}
	}
	visible(r.thought, m.Reasoning != "")
	visible(r.waiting, streaming && m.Content == "" && m.Reasoning == "")
	var err error
	if m.Status == history.StatusFailed {
		err = plainError(m.Error)
	}
	r.err.show(err)
	if stats := statWords(m); r.stats.Text != stats {
		r.stats.SetText(stats)
	}
	visible(r.foot, !streaming && (m.Content != "" || r.stats.Text != ""))
}

// plainError is an error of which only the words were kept.
type plainError string

func (e plainError) Error() string { return string(e) }

// blockBytes is how long a block gets before the next paragraph begins a new
// one: what a frame lays out again stays bounded in long answers.
const blockBytes = 900

// textBlocks is selectable text in blocks of whole paragraphs.
type textBlocks struct {
	box        *fyne.Container
	importance widget.Importance
	shown      string // what all blocks show
	tailStart  int    // where in shown the last block begins
	tail       *widget.Label
}

func newTextBlocks(importance widget.Importance) *textBlocks {
	return &textBlocks{box: container.New(stack{}), importance: importance}
}

// show replaces the text; what only grows keeps its settled blocks.
func (b *textBlocks) show(s string) {
	if s == b.shown && b.tail != nil {
		return
	}
	if !strings.HasPrefix(s, b.shown[:min(b.tailStart, len(b.shown))]) {
		b.box.RemoveAll()
		b.tailStart, b.tail = 0, nil
	}
	b.shown = s
	for {
		rest := s[b.tailStart:]
		cut, next := paragraphEnd(rest)
		if cut < 0 {
			b.set(rest)
			return
		}
		b.set(rest[:cut])
		b.tail = nil
		b.tailStart += next
	}
}

func (b *textBlocks) set(s string) {
	if b.tail == nil {
		b.tail = text("", theme.SizeNameText, b.importance)
		b.tail.Selectable = true
		b.tail.Text = s
		b.box.Add(b.tail)
		return
	}
	b.tail.SetText(s)
}

// paragraphEnd finds where the block at the start of s ends and the next one
// begins; -1 when it is not complete.
func paragraphEnd(s string) (end, next int) {
	if len(s) <= blockBytes {
		return -1, -1
	}
	for _, separator := range []string{"\n\n", "\n"} {
		if i := strings.Index(s[blockBytes:], separator); i >= 0 && (separator == "\n\n" || len(s) > 2*blockBytes) {
			end = blockBytes + i
			next = end + len(s[end:]) - len(strings.TrimLeft(s[end:], "\n"))
			return end, next
		}
	}
	return -1, -1
}

// stack is a column without margins: each object gets the height it needs at
// the full width.
type stack struct{}

func (stack) Layout(objects []fyne.CanvasObject, size fyne.Size) {
	column{maxWidth: size.Width}.Layout(objects, size)
}

func (stack) MinSize(objects []fyne.CanvasObject) fyne.Size {
	return column{maxWidth: 1 << 20}.MinSize(objects)
}
