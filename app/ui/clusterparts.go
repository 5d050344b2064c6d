//go:build !headless

package ui

import (
	"fmt"
	"slices"
	"strings"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"

	"daisy/app/session"
)

// memberList shows who holds how much of the model, while in a cluster.
type memberList struct {
	box   *fyne.Container
	rows  *fyne.Container
	note  *widget.Label
	shown []session.Member
}

func newMemberList() *memberList {
	l := &memberList{rows: container.NewVBox(), note: text("", theme.SizeNameText, widget.LowImportance)}
	l.box = container.NewVBox(heading(tr("cluster.members")), card(l.rows), l.note)
	return l
}

func (l *memberList) show(s session.ClusterState) {
	visible(l.box, s.Phase == session.Joined)
	visible(l.note, s.Phase == session.Joined && !s.Leading)
	l.note.SetText(tr("cluster.led_by", args{"Leader": s.Leader}))
	if slices.Equal(l.shown, s.Members) {
		return
	}
	l.shown = s.Members
	l.rows.RemoveAll()
	var total int64
	for _, m := range s.Members {
		total += m.WeightBytes
	}
	for _, m := range s.Members {
		share := widget.NewProgressBar()
		share.TextFormatter = func() string { return byteWords(m.WeightBytes) }
		if total > 0 {
			share.SetValue(float64(m.WeightBytes) / float64(total))
		}
		name := line(m.Name, theme.SizeNameText, widget.MediumImportance)
		rank := line(fmt.Sprintf("%s %d", tr("cluster.rank"), m.Rank), sizeSmall, widget.LowImportance)
		row := container.NewGridWithColumns(3, name, rank, padded(4, share))
		visible(share, m.WeightBytes > 0)
		l.rows.Add(row)
	}
}

// progressLine shows how far joining is.
type progressLine struct {
	box     *fyne.Container
	note    *widget.Label
	bar     *widget.ProgressBar
	waiting *widget.ProgressBarInfinite
}

func newProgressLine() *progressLine {
	p := &progressLine{note: line("", sizeSmall, widget.LowImportance), bar: widget.NewProgressBar(), waiting: widget.NewProgressBarInfinite()}
	p.waiting.Stop() // it would keep drawing while hidden
	p.box = container.NewVBox(p.note, p.bar, p.waiting)
	return p
}

func (p *progressLine) show(s session.ClusterState) {
	joining := s.Phase == session.Joining
	known := s.Progress.Total > 0
	visible(p.bar, joining && known)
	visible(p.waiting, joining && !known)
	if joining && !known {
		if !p.waiting.Running() {
			p.waiting.Start()
		}
	} else if p.waiting.Running() {
		p.waiting.Stop()
	}
	if known {
		p.bar.SetValue(float64(s.Progress.Done) / float64(s.Progress.Total))
	}
	note := ""
	if len(s.Progress.Waiting) > 0 {
		note = tr("cluster.waiting", args{"Names": strings.Join(s.Progress.Waiting, ", ")})
	}
	if p.note.Text != note {
		p.note.SetText(note)
	}
	visible(p.note, note != "")
	visible(p.box, joining)
}

// errorLine says in words what went wrong, where there is something.
type errorLine struct {
	box   *fyne.Container
	label *widget.Label
	err   error // shown
}

func newErrorLine() *errorLine {
	e := &errorLine{label: text("", theme.SizeNameText, widget.DangerImportance)}
	e.label.Selectable = true
	icon := container.NewVBox(padded(8, widget.NewIcon(theme.NewErrorThemedResource(theme.ErrorIcon()))))
	e.box = container.NewBorder(nil, nil, icon, nil, e.label)
	e.box.Hide()
	return e
}

func (e *errorLine) show(err error) {
	e.err = err
	if err != nil {
		if words := errorWords(err); e.label.Text != words {
			e.label.SetText(words)
		}
	}
	visible(e.box, err != nil)
}
