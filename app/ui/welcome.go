//go:build !headless

package ui

import (
	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/layout"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"

	"daisy/app/session"
	"daisy/assets"
)

// welcome is what an empty conversation shows: what to do next.
type welcome struct {
	box    *fyne.Container
	title  *widget.Label
	text   *widget.Label
	button *widget.Button
}

func newWelcome(openCluster func()) *welcome {
	w := &welcome{
		title: widget.NewLabelWithStyle("", fyne.TextAlignCenter, fyne.TextStyle{Bold: true}),
		text:  text("", theme.SizeNameText, widget.LowImportance),
	}
	w.title.SizeName = sizeTitle
	w.title.Wrapping = fyne.TextWrapWord
	w.text.Alignment = fyne.TextAlignCenter
	w.button = widget.NewButton(tr("menu.cluster"), openCluster)
	w.button.Importance = widget.HighImportance
	flower := canvas.NewImageFromResource(fyne.NewStaticResource("daisy.png", assets.Icon))
	flower.FillMode = canvas.ImageFillContain
	flower.SetMinSize(fyne.NewSize(88, 88))
	w.box = container.NewVBox(layout.NewSpacer(),
		container.New(column{maxWidth: 420, gap: 2, margin: 16},
			flower, w.title, w.text, container.NewCenter(w.button)),
		layout.NewSpacer(), layout.NewSpacer())
	return w
}

func (w *welcome) show(s session.ClusterState) {
	title, words, button := tr("welcome.title"), tr("welcome.ask", args{"Model": s.Model}), false
	switch {
	case s.Phase == session.Joined && !s.Leading:
		words = tr("cluster.led_by", args{"Leader": s.Leader})
	case s.Phase == session.Joining:
		words = stateWords(s, 1)
	case s.Phase != session.Joined:
		words, button = tr("welcome.no_model"), true
	}
	if w.title.Text != title {
		w.title.SetText(title)
	}
	if w.text.Text != words {
		w.text.SetText(words)
	}
	visible(w.button, button)
}
