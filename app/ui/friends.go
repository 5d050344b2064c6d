//go:build !headless

package ui

import (
	"slices"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/dialog"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"

	"daisy/app/session"
)

// friendList shows the paired Macs: since when, what their invitations meet, and
// a button to remove each.
type friendList struct {
	box    *fyne.Container
	rows   *fyne.Container
	err    *errorLine
	win    fyne.Window
	model  *session.Pairings
	shown  []session.Friend
	remove map[string]*widget.Button // by ID
	policy map[string]*widget.Select
	ask    dialog.Dialog // the question that is open
}

// policies are the choices for invitations, in the order shown.
var policies = []string{"ask", "always", "never"}

func newFriendList(win fyne.Window, model *session.Pairings) *friendList {
	l := &friendList{rows: container.NewVBox(), err: newErrorLine(), win: win, model: model}
	l.box = container.NewVBox(gap(6), heading(tr("friends.title")), card(l.rows), l.err.box)
	l.box.Hide()
	return l
}

func policyWords(policy string) string {
	return map[string]string{"ask": tr("friends.ask"), "always": tr("friends.always"), "never": tr("friends.never")}[policy]
}

func (l *friendList) show() {
	friends := l.model.Friends()
	l.err.show(l.model.Err())
	visible(l.box, len(friends) > 0)
	if slices.Equal(friends, l.shown) {
		return
	}
	l.shown = friends
	l.rows.RemoveAll()
	l.remove, l.policy = map[string]*widget.Button{}, map[string]*widget.Select{}
	for _, f := range friends {
		l.rows.Add(l.row(f))
	}
}

func (l *friendList) row(f session.Friend) fyne.CanvasObject {
	var words []string
	for _, p := range policies {
		words = append(words, policyWords(p))
	}
	choice := widget.NewSelect(words, nil)
	choice.Selected = policyWords(f.Consent)
	choice.OnChanged = func(string) {
		if at := choice.SelectedIndex(); at >= 0 && policies[at] != f.Consent {
			l.model.SetConsent(f.ID, policies[at])
		}
	}
	button := widget.NewButton(tr("friends.remove"), func() { l.question(f) })
	l.policy[f.ID], l.remove[f.ID] = choice, button
	name := line(f.Name, theme.SizeNameText, widget.MediumImportance)
	since := line(tr("friends.since", args{"Day": f.Since.Local().Format("2006-01-02")}), sizeSmall, widget.LowImportance)
	return container.NewBorder(nil, nil, nil, container.NewHBox(choice, button),
		container.New(stack{}, name, container.New(inset{top: -8}, since)))
}

// question asks before a Mac is removed.
func (l *friendList) question(f session.Friend) {
	ask := dialog.NewConfirm(tr("friends.remove_title", args{"Name": f.Name}), tr("friends.remove_question"), func(yes bool) {
		l.ask = nil
		if yes {
			l.model.Remove(f.ID)
		}
	}, l.win)
	ask.SetConfirmText(tr("friends.remove"))
	ask.SetConfirmImportance(widget.DangerImportance)
	l.ask = ask
	ask.Show()
}
