//go:build !headless

package ui

import (
	"context"
	"errors"
	"strings"
	"testing"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/driver/desktop"
	"fyne.io/fyne/v2/test"
	"fyne.io/fyne/v2/widget"
	"github.com/stretchr/testify/require"

	"daisy/app/history"
	"daisy/app/session"
	"daisy/inference"
)

type askerFunc func(context.Context, inference.Request, func(inference.Delta)) (inference.Stats, error)

func (f askerFunc) Chat(ctx context.Context, r inference.Request, emit func(inference.Delta)) (inference.Stats, error) {
	return f(ctx, r, emit)
}

// shown is the text of a row as the person sees it.
func shown(r *messageRow) string {
	if r.body == nil {
		return r.message.Content
	}
	var parts []string
	for _, o := range r.body.box.Objects {
		parts = append(parts, o.(*widget.Label).Text)
	}
	return strings.Join(parts, "\n\n")
}

func (c *chatWindow) lastRow() *messageRow { return c.thread.rows[len(c.thread.rows)-1] }

func (c *chatWindow) lastStatus() history.Status {
	if len(c.thread.rows) == 0 || c.lastRow().body == nil {
		return ""
	}
	return c.lastRow().message.Status
}

func enter() *fyne.KeyEvent { return &fyne.KeyEvent{Name: fyne.KeyReturn} }

func TestAskInTheWindow(t *testing.T) {
	d := newTestDesk(t)
	d.showChat()
	c := d.chat
	require.True(t, c.welcome.box.Visible())
	require.True(t, c.send.Disabled(), "nobody is there to answer")
	test.Type(c.input, "x")
	c.input.TypedKey(enter())
	require.Equal(t, "No model is running. Choose one in the cluster window.", c.notice.label.Text)
	require.Equal(t, "x", c.input.Text)
	c.input.SetText("")

	step := make(chan struct{})
	d.cfg.Session.Use(askerFunc(func(_ context.Context, r inference.Request, emit func(inference.Delta)) (inference.Stats, error) {
		emit(inference.Delta{Reasoning: "easy"})
		emit(inference.Delta{Text: "Paris"})
		<-step
		emit(inference.Delta{Text: " is it.\n"})
		return inference.Stats{GeneratedTokens: 11, Decode: 1e9}, nil
	}), "tiny")
	c.updateState()
	require.False(t, c.send.Disabled())
	require.False(t, c.notice.box.Visible())

	test.Type(c.input, "capital of France?")
	c.input.TypedKey(enter())
	require.Empty(t, c.input.Text)
	require.True(t, c.stop.Visible())
	require.False(t, c.send.Visible())
	d.until(t, func() bool { return len(c.thread.rows) == 2 && shown(c.lastRow()) == "Paris" })
	require.False(t, c.welcome.box.Visible())
	require.True(t, c.lastRow().thought.Visible())
	require.False(t, c.lastRow().reasoning.box.Visible(), "folded away")
	test.Tap(c.lastRow().thought)
	require.True(t, c.lastRow().reasoning.box.Visible())

	// A second question waits for the first answer.
	test.Type(c.input, "and?")
	c.input.TypedKey(enter())
	require.Equal(t, "and?", c.input.Text)

	close(step)
	d.until(t, func() bool { return c.lastStatus() == history.StatusDone && c.send.Visible() })
	require.Equal(t, "Paris is it.", shown(c.lastRow()))
	require.Equal(t, "10.0 tokens/s · 11 tokens", c.lastRow().stats.Text)
	test.Tap(c.lastRow().foot.Objects[1].(fyne.Tappable))
	require.Equal(t, "Paris is it.\n", d.fyne.Clipboard().Content())

	d.until(t, func() bool { return len(c.sidebar.entries) == 1 && c.title.Text == "capital of France?" })
	kept, err := d.store.Messages(t.Context(), c.current)
	require.NoError(t, err)
	require.Len(t, kept, 2)
	require.Equal(t, "Paris is it.\n", kept[1].Content)
}

func TestFailureIsShownWithTheText(t *testing.T) {
	d := newTestDesk(t)
	d.cfg.Session.Use(askerFunc(func(_ context.Context, _ inference.Request, emit func(inference.Delta)) (inference.Stats, error) {
		emit(inference.Delta{Text: "half"})
		return inference.Stats{}, errors.New("rank 1 was lost")
	}), "tiny")
	d.showChat()
	c := d.chat
	test.Type(c.input, "q")
	test.Tap(c.send)
	d.until(t, func() bool { return c.lastStatus() == history.StatusFailed })
	require.Equal(t, "half", shown(c.lastRow()))
	require.True(t, c.lastRow().err.box.Visible())
	require.Equal(t, "rank 1 was lost", c.lastRow().err.label.Text)
}

func TestStopInTheWindow(t *testing.T) {
	d := newTestDesk(t)
	d.cfg.Session.Use(askerFunc(func(ctx context.Context, _ inference.Request, emit func(inference.Delta)) (inference.Stats, error) {
		emit(inference.Delta{Text: "so far"})
		<-ctx.Done()
		return inference.Stats{}, ctx.Err()
	}), "tiny")
	d.showChat()
	c := d.chat
	test.Type(c.input, "q")
	test.Tap(c.send)
	d.until(t, func() bool { return len(c.thread.rows) == 2 && shown(c.lastRow()) == "so far" })
	c.input.TypedKey(&fyne.KeyEvent{Name: fyne.KeyEscape})
	d.until(t, func() bool { return c.lastStatus() == history.StatusStopped && c.send.Visible() })
	require.Equal(t, "Stopped", c.lastRow().stats.Text)
	require.False(t, c.lastRow().err.box.Visible())
}

// Looking at another conversation loses nothing of an answer that streams.
func TestSwitchWhileAnswering(t *testing.T) {
	d := newTestDesk(t)
	other, err := d.store.CreateConversation(t.Context(), "other")
	require.NoError(t, err)
	_, err = d.store.AddMessage(t.Context(), history.Message{Conversation: other.ID, Role: history.RoleUser, Content: "old question"})
	require.NoError(t, err)

	step := make(chan string, 10)
	d.cfg.Session.Use(askerFunc(func(_ context.Context, _ inference.Request, emit func(inference.Delta)) (inference.Stats, error) {
		for s := range step {
			emit(inference.Delta{Text: s})
		}
		return inference.Stats{}, nil
	}), "tiny")
	d.showChat()
	c := d.chat
	test.Type(c.input, "q")
	test.Tap(c.send)
	step <- "one "
	d.until(t, func() bool { return len(c.thread.rows) == 2 && shown(c.lastRow()) == "one" })
	answering := c.current

	d.until(t, func() bool { return len(c.sidebar.entries) == 2 })
	c.open(other.ID)
	d.until(t, func() bool { return len(c.thread.rows) == 1 })
	require.True(t, c.send.Visible(), "this one is not being answered")
	step <- "two "
	c.open(answering)
	d.until(t, func() bool { return len(c.thread.rows) == 2 && shown(c.lastRow()) == "one two" })
	require.True(t, c.stop.Visible())
	c.open(other.ID)
	d.until(t, func() bool { return len(c.thread.rows) == 1 })
	step <- "three"
	close(step)
	c.open(answering)
	d.until(t, func() bool { return c.lastStatus() == history.StatusDone && shown(c.lastRow()) == "one two three" })
}

func TestDeleteConversation(t *testing.T) {
	d := newTestDesk(t)
	one, err := d.store.CreateConversation(t.Context(), "one")
	require.NoError(t, err)
	d.showChat()
	c := d.chat
	d.until(t, func() bool { return len(c.sidebar.entries) == 1 })
	c.open(one.ID)
	c.delete(one.ID)
	d.until(t, func() bool { return len(c.sidebar.entries) == 0 })
	require.Zero(t, c.current)
	require.False(t, c.remove.Visible())
}

// The end stays in view while an answer grows, unless the person has scrolled
// away from it.
func TestScrollFollows(t *testing.T) {
	d := newTestDesk(t)
	d.showChat()
	c := d.chat
	m := history.Message{ID: 2, Role: history.RoleAssistant, Status: history.StatusStreaming}
	grow := func(n int) {
		m.Content += strings.Repeat("another line of text\n\n", n)
		c.thread.put(m)
		c.thread.settle()
	}
	grow(100)
	require.Greater(t, c.thread.scroll.Content.Size().Height, 2*c.thread.scroll.Size().Height)
	require.True(t, c.thread.atEnd())
	grow(10)
	require.True(t, c.thread.atEnd())
	c.thread.scroll.Scrolled(&fyne.ScrollEvent{Scrolled: fyne.NewDelta(0, 500)})
	at := c.thread.scroll.Offset
	grow(10)
	require.Equal(t, at, c.thread.scroll.Offset)
	c.thread.scroll.ScrollToBottom()
	c.thread.scroll.Scrolled(&fyne.ScrollEvent{Scrolled: fyne.NewDelta(0, -1)})
	grow(10)
	require.True(t, c.thread.atEnd())
}

func TestEarlierMessages(t *testing.T) {
	d := newTestDesk(t)
	d.showChat()
	var list []history.Message
	for i := range 100 {
		list = append(list, history.Message{ID: int64(i + 1), Role: history.RoleUser, Content: "m"})
	}
	th := d.chat.thread
	th.set(list)
	require.Len(t, th.rows, firstRows)
	require.True(t, th.earlier.Visible())
	test.Tap(th.earlier)
	test.Tap(th.earlier)
	require.Len(t, th.rows, 100)
	require.False(t, th.earlier.Visible())
	for i, r := range th.rows {
		require.Equal(t, int64(i+1), r.id)
	}
}

func TestEnterAndShiftEnter(t *testing.T) {
	test.NewTempApp(t)
	sent, stopped := 0, 0
	e := newPromptEntry(func() { sent++ }, func() { stopped++ })
	w := test.NewTempWindow(t, e)
	w.Resize(fyne.NewSize(400, 200))
	test.Type(e, "one")
	shift := &fyne.KeyEvent{Name: desktop.KeyShiftLeft}
	e.KeyDown(shift)
	e.TypedKey(enter())
	e.KeyUp(shift)
	test.Type(e, "two")
	require.Equal(t, "one\ntwo", e.Text)
	require.Equal(t, 2, e.rows)
	require.Zero(t, sent)
	e.TypedKey(enter())
	require.Equal(t, 1, sent)
	require.Equal(t, "one\ntwo", e.Text)
	e.KeyDown(shift)
	e.FocusLost() // the key comes up in another window
	e.TypedKey(enter())
	require.Equal(t, 2, sent)
	e.TypedKey(&fyne.KeyEvent{Name: fyne.KeyEscape})
	require.Equal(t, 1, stopped)
	e.SetText(strings.Repeat("word ", 500))
	require.Equal(t, entryRows, e.rows)
}

// Who chats is told that a model without a chat template answers less well.
func TestMissingTemplateIsTold(t *testing.T) {
	for model, want := range map[string]string{
		"tiny":  "tiny – on this Mac",
		"plain": "plain – on this Mac · This model has no chat template; a plain one is used",
	} {
		d := newTestDesk(t, session.Model{Name: model, Path: "/models/x.gguf"})
		d.showChat()
		d.until(t, func() bool { return d.cfg.Cluster.State().Chosen != "" })
		d.cfg.Cluster.Join()
		d.until(t, func() bool { return d.cfg.Cluster.State().Phase == session.Joined && d.chat.status.Text == want })
	}
}
