//go:build !headless

package ui

import (
	"strings"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/dialog"
	"fyne.io/fyne/v2/driver/desktop"
	"fyne.io/fyne/v2/theme"
	"fyne.io/fyne/v2/widget"

	"daisy/app/session"
)

// chatWindow holds the conversations and asks.
type chatWindow struct {
	desk   *desk
	win    fyne.Window
	live   *liveAnswers
	frames *frames // of answers
	states *frames // of the cluster
	cancel func()

	sidebar *sidebar
	thread  *thread
	title   *widget.Label
	remove  *widget.Button
	welcome *welcome
	input   *promptEntry
	send    *widget.Button
	stop    *widget.Button
	status  *widget.Label
	notice  *errorLine
	back    *comeBack

	current int64 // conversation; 0: a new one, not in the history yet
	opening int   // counts open; results of earlier ones are dropped
	asking  bool  // between the key and the answer's beginning
}

func newChatWindow(d *desk) *chatWindow {
	c := &chatWindow{desk: d, win: d.window(appName)}
	c.frames, c.states = d.newFrames(c.updateAnswer), d.newFrames(c.updateState)
	c.live = newLiveAnswers(c.frames.signal)

	c.sidebar = newSidebar(c.open, c.fresh)
	c.thread = newThread(c.copy)
	c.title = line("", theme.SizeNameText, widget.MediumImportance)
	c.title.TextStyle.Bold = true
	c.remove = widget.NewButtonWithIcon("", theme.DeleteIcon(), c.confirmDelete)
	c.remove.Importance = widget.LowImportance
	c.welcome = newWelcome(d.showCluster)
	c.input = newPromptEntry(c.ask, c.stopAnswer)
	c.send = widget.NewButtonWithIcon(tr("chat.send"), theme.MailSendIcon(), c.ask)
	c.send.Importance = widget.HighImportance
	c.stop = widget.NewButtonWithIcon(tr("chat.stop"), theme.MediaStopIcon(), c.stopAnswer)
	c.status = text("", sizeSmall, widget.LowImportance)
	c.notice = newErrorLine()
	c.back = newComeBack(c)

	head := container.NewBorder(nil, widget.NewSeparator(), nil, nil,
		container.New(inset{6, 8, 6, 10}, container.NewBorder(nil, nil, nil, c.remove, c.title)))
	buttons := container.NewVBox(container.NewStack(c.send, c.stop))
	foot := container.New(column{maxWidth: columnWidth, gap: 2, margin: 10},
		c.back.box, c.notice.box, container.NewBorder(nil, nil, nil, buttons, c.input), c.status)
	right := container.NewBorder(head, foot, nil, nil, container.NewStack(c.thread.scroll, c.welcome.box))
	side := container.New(fixedWidth(sidebarWidth), c.sidebar.box)
	c.win.SetContent(container.NewBorder(nil, nil, side, nil, right))
	c.win.SetPadded(false)
	c.win.Resize(fyne.NewSize(960, 680))
	c.win.Canvas().AddShortcut(&desktop.CustomShortcut{KeyName: fyne.KeyN, Modifier: fyne.KeyModifierShortcutDefault},
		func(fyne.Shortcut) { c.fresh() })

	c.fresh()
	c.list()
	c.updateState()
	c.cancel = d.cfg.Cluster.Subscribe(c.states.signal)
	return c
}

func (c *chatWindow) close() {
	c.cancel()
	c.frames.stop()
	c.states.stop()
}

// list reads the conversations again.
func (c *chatWindow) list() {
	c.desk.later(func() func() {
		list, err := c.desk.cfg.Session.Store().Conversations(c.desk.ctx)
		return func() {
			if err != nil {
				c.notice.show(err)
				return
			}
			c.sidebar.show(list, c.current)
			c.showTitle()
		}
	})
}

// fresh begins a new conversation, which enters the history with its first
// message.
func (c *chatWindow) fresh() {
	c.current = 0
	c.opening++
	c.notice.show(nil)
	c.thread.set(nil)
	c.sidebar.mark(0)
	c.showTitle()
	c.updateButtons()
	c.win.Canvas().Focus(c.input)
}

// open shows a conversation of the history.
func (c *chatWindow) open(id int64) {
	if id == c.current {
		return
	}
	c.current = id
	c.opening++
	mine := c.opening
	c.notice.show(nil)
	c.desk.later(func() func() {
		messages, err := c.desk.cfg.Session.Store().Messages(c.desk.ctx, id)
		return func() {
			if mine != c.opening {
				return
			}
			c.notice.show(err)
			c.thread.set(messages)
			c.updateAnswer() // one may be on its way
			c.showTitle()
			c.win.Canvas().Focus(c.input)
		}
	})
}

func (c *chatWindow) showTitle() {
	title := tr("sidebar.new")
	for _, e := range c.sidebar.entries {
		if e.ID == c.current {
			title = e.Title
		}
	}
	c.title.SetText(title)
	visible(c.remove, c.current != 0)
	if c.desk.chat == c { // not while it is made
		c.desk.stand()
	}
}

// ask sends what is in the input.
func (c *chatWindow) ask() {
	question := strings.TrimSpace(c.input.Text)
	if question == "" || c.busy() {
		return
	}
	s := c.desk.cfg.Session
	if s.Model() == "" {
		c.notice.show(session.ErrNoModel)
		return
	}
	c.input.SetText("")
	c.notice.show(nil)
	c.back.hide()
	c.asking = true
	c.updateButtons()
	conversation, mine := c.current, c.opening
	failed := func(err error) { // from any goroutine
		c.desk.onMain(func() {
			c.asking = false
			c.notice.show(err)
			if c.input.Text == "" {
				c.input.SetText(question) // nothing was asked
			}
			c.updateButtons()
		})
	}
	c.desk.later(func() func() {
		if conversation == 0 {
			fresh, err := s.Store().CreateConversation(c.desk.ctx, "")
			if err != nil {
				failed(err)
				return nil
			}
			conversation = fresh.ID
		}
		return func() {
			if mine == c.opening {
				c.current = conversation
			}
			s.Start(conversation, question, c.live.observe, failed)
		}
	})
}

// busy says whether the open conversation is being answered.
func (c *chatWindow) busy() bool {
	return c.asking || c.current != 0 && c.desk.cfg.Session.Running(c.current)
}

func (c *chatWindow) stopAnswer() {
	if c.current != 0 {
		c.desk.cfg.Session.Stop(c.current)
	}
}

// updateAnswer shows how far the answer in the open conversation is.
func (c *chatWindow) updateAnswer() {
	question, answer, ended, ok := c.live.get(c.current)
	if !ok {
		c.updateButtons()
		return
	}
	if c.asking {
		c.asking = false
		c.list() // the conversation is new or has moved to the top
	}
	c.thread.put(question)
	c.thread.put(answer)
	c.thread.settle()
	c.updateButtons()
	if ended {
		c.updateState()
	}
}

func (c *chatWindow) updateButtons() {
	busy := c.busy()
	ready := c.desk.cfg.Session.Model() != ""
	visible(c.send, !busy)
	visible(c.stop, busy)
	enabled(c.send, ready)
	visible(c.welcome.box, c.thread.empty() && !busy)
}

// updateState shows where this Mac stands.
func (c *chatWindow) updateState() {
	state := c.desk.cfg.Cluster.State()
	words := stateWords(state, 1)
	switch {
	case state.Phase != session.Joined:
	case !state.Leading:
		words = tr("cluster.led_by", args{"Leader": state.Leader})
	case state.NoTemplate:
		words += " · " + tr("state.no_template")
	}
	if c.status.Text != words {
		c.status.SetText(words)
	}
	if c.notice.err == session.ErrNoModel && c.desk.cfg.Session.Model() != "" {
		c.notice.show(nil)
	}
	c.welcome.show(state)
	c.updateButtons()
}

func (c *chatWindow) copy(text string) { c.desk.fyne.Clipboard().SetContent(text) }

func (c *chatWindow) confirmDelete() {
	id := c.current
	ask := dialog.NewConfirm(tr("delete.title"), tr("delete.question"), func(yes bool) {
		if yes {
			c.delete(id)
		}
	}, c.win)
	ask.SetConfirmText(tr("delete.yes"))
	ask.SetConfirmImportance(widget.DangerImportance)
	ask.SetDismissText(tr("Cancel"))
	ask.Show()
}

func (c *chatWindow) delete(id int64) {
	c.desk.cfg.Session.Stop(id)
	c.desk.later(func() func() {
		err := c.desk.cfg.Session.Store().DeleteConversation(c.desk.ctx, id)
		return func() {
			if err != nil {
				c.notice.show(err)
				return
			}
			if c.current == id {
				c.fresh()
			}
			c.list()
		}
	})
}
