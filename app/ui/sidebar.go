//go:build !headless

package ui

import (
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"

	"daisy/app/history"
)

// sidebar lists the conversations.
type sidebar struct {
	box      fyne.CanvasObject
	list     *widget.List
	empty    *widget.Label
	entries  []history.Conversation
	open     func(int64)
	silenced bool // a selection made here, not by the person
}

func newSidebar(open func(int64), fresh func()) *sidebar {
	s := &sidebar{open: open}
	s.list = widget.NewList(func() int { return len(s.entries) }, newSidebarRow, s.fill)
	s.list.HideSeparators = true
	s.list.OnSelected = func(i int) {
		if !s.silenced && i < len(s.entries) {
			s.open(s.entries[i].ID)
		}
	}
	s.empty = text(tr("sidebar.empty"), theme.SizeNameText, widget.LowImportance)
	s.empty.Alignment = fyne.TextAlignCenter
	add := widget.NewButtonWithIcon(tr("sidebar.new"), theme.ContentAddIcon(), fresh)
	add.Alignment = widget.ButtonAlignLeading
	s.box = container.NewStack(newPanel(colorSidebar, "", 0),
		container.NewBorder(padded(10, add), nil, nil, nil, container.NewStack(s.list, container.NewVBox(s.empty))))
	return s
}

func newSidebarRow() fyne.CanvasObject {
	return container.NewBorder(nil, nil, nil, widget.NewLabel("0000-00-00"), line("", theme.SizeNameText, widget.MediumImportance))
}

func (s *sidebar) fill(i widget.ListItemID, o fyne.CanvasObject) {
	parts := o.(*fyne.Container).Objects
	title, when := parts[0].(*widget.Label), parts[1].(*widget.Label)
	c := s.entries[i]
	name := c.Title
	if name == "" {
		name = tr("sidebar.untitled")
	}
	title.SetText(name)
	when.SizeName, when.Importance = sizeSmall, widget.LowImportance
	when.SetText(dayWords(c.Updated, time.Now()))
}

// show replaces the list and marks the open conversation.
func (s *sidebar) show(list []history.Conversation, current int64) {
	s.entries = list
	visible(s.empty, len(list) == 0)
	s.list.Refresh()
	s.mark(current)
}

// mark selects without opening.
func (s *sidebar) mark(current int64) {
	s.silenced = true
	defer func() { s.silenced = false }()
	for i, c := range s.entries {
		if c.ID == current {
			s.list.Select(i)
			return
		}
	}
	s.list.UnselectAll()
}
