//go:build !headless

package ui

import (
	"net/url"
	"path/filepath"
	"slices"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/dialog"
	"fyne.io/fyne/v2/storage"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"

	"daisy/app/session"
)

// modelPick chooses the model file, and says where to put one when there is
// none.
type modelPick struct {
	win    fyne.Window
	desk   *desk
	box    *fyne.Container
	choice *widget.Select
	detail *widget.Label
	none   *widget.Label
	models []session.Model
}

func newModelPick(win fyne.Window, d *desk) *modelPick {
	m := &modelPick{win: win, desk: d}
	m.choice = widget.NewSelect(nil, func(string) {
		if i := m.choice.SelectedIndex(); i >= 0 && i < len(m.models) {
			d.cfg.Cluster.Choose(m.models[i].Path)
		}
	})
	m.choice.PlaceHolder = tr("model.choose")
	m.detail = line("", sizeSmall, widget.LowImportance)
	m.none = text("", theme.SizeNameText, widget.LowImportance)
	file := widget.NewButtonWithIcon(tr("model.file"), theme.FileIcon(), m.pickFile)
	folder := widget.NewButtonWithIcon(tr("model.folder"), theme.FolderOpenIcon(), m.openFolder)
	again := widget.NewButtonWithIcon("", theme.ViewRefreshIcon(), d.cfg.Cluster.Reload)
	again.Importance = widget.LowImportance
	m.box = container.NewVBox(
		m.none,
		m.choice,
		m.detail,
		container.NewBorder(nil, nil, nil, again, container.NewGridWithColumns(2, file, folder)),
	)
	return m
}

func (m *modelPick) show(s session.ClusterState) {
	if !slices.Equal(m.models, s.Models) {
		m.models = s.Models
		options := make([]string, len(s.Models))
		for i, f := range s.Models {
			options[i] = modelWords(f)
		}
		m.choice.SetOptions(options)
	}
	at := slices.IndexFunc(m.models, func(f session.Model) bool { return f.Path == s.Chosen })
	if at >= 0 && m.choice.SelectedIndex() != at {
		changed := m.choice.OnChanged
		m.choice.OnChanged = nil // the model knows already
		m.choice.SetSelectedIndex(at)
		m.choice.OnChanged = changed
	}
	if at >= 0 {
		m.detail.SetText(m.models[at].Path)
	}
	visible(m.detail, at >= 0)
	visible(m.choice, len(m.models) > 0)
	switch {
	case s.ListErr != nil:
		m.none.SetText(errorWords(s.ListErr))
	case s.Listing:
		m.none.SetText(tr("model.listing"))
	default:
		m.none.SetText(tr("model.none", args{"Folder": s.Folder}))
	}
	visible(m.none, len(m.models) == 0 || s.ListErr != nil)
}

// modelWords names a file so that two of the same name differ.
func modelWords(f session.Model) string {
	return f.Name + "  ·  " + byteWords(f.Bytes) + "  ·  " + filepath.Base(f.Path)
}

func (m *modelPick) pickFile() {
	open := dialog.NewFileOpen(func(file fyne.URIReadCloser, err error) {
		if err != nil {
			dialog.ShowError(err, m.win)
			return
		}
		if file == nil {
			return // cancelled
		}
		path := file.URI().Path()
		file.Close()
		m.desk.cfg.Cluster.AddFile(path)
	}, m.win)
	open.SetFilter(storage.NewExtensionFileFilter([]string{".gguf"}))
	if dir, err := storage.ListerForURI(storage.NewFileURI(m.desk.cfg.Cluster.State().Folder)); err == nil {
		open.SetLocation(dir)
	}
	open.Show()
}

func (m *modelPick) openFolder() {
	folder := url.URL{Scheme: "file", Path: m.desk.cfg.Cluster.State().Folder}
	if err := m.desk.fyne.OpenURL(&folder); err != nil {
		dialog.ShowError(err, m.win)
	}
}
