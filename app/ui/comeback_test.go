//go:build !headless

package ui

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"daisy/app/history"
	"daisy/app/session"
	"daisy/inference"
)

// halfAnswer is a conversation as a program that died in mid-answer leaves it.
func halfAnswer(t *testing.T, d *testDesk) (conversation int64) {
	t.Helper()
	c, err := d.store.CreateConversation(t.Context(), "title")
	require.NoError(t, err)
	q, err := d.store.AddMessage(t.Context(), history.Message{Conversation: c.ID, Role: history.RoleUser, Content: "q"})
	require.NoError(t, err)
	_, err = d.store.AddMessage(t.Context(), history.Message{
		Conversation: c.ID, Parent: q.ID, Role: history.RoleAssistant, Content: "half an", Status: history.StatusInterrupted,
	})
	require.NoError(t, err)
	return c.ID
}

// The window that was open shows the conversation again, and the answer goes on
// in its row.
func TestComesBackAsItWas(t *testing.T) {
	d := newTestDesk(t, session.Model{Name: "tiny", Path: "/tiny"})
	id := halfAnswer(t, d)
	d.node.chat = func(_ context.Context, r inference.Request, emit func(inference.Delta)) (inference.Stats, error) {
		emit(inference.Delta{Text: " answer after " + r.Begun})
		return inference.Stats{GeneratedTokens: 3}, nil
	}
	var kept session.Standing
	d.cfg.Keep = func(s session.Standing) { kept = s }
	was := session.Standing{Chat: true, Conversation: id, Running: []int64{id}, Model: "/tiny"}
	d.comeBack(was)
	require.Equal(t, tr("back.happened"), strings.TrimSpace(d.chat.back.label.Text))
	require.True(t, d.chat.back.box.Visible())
	require.Equal(t, "/tiny", kept.Model, "another fault now would lose nothing")
	d.until(t, func() bool {
		rows := d.chat.thread.rows
		return len(rows) == 2 && rows[1].body.shown == "half an answer after half an" && rows[1].message.Status == history.StatusDone
	})
	require.Equal(t, tr("back.happened")+" "+tr("back.going"), d.chat.back.label.Text)
	require.False(t, d.chat.back.again.Visible())
	require.Equal(t, session.Standing{Chat: true, Conversation: id, Model: "/tiny"}, session.Standing{
		Chat: kept.Chat, Conversation: kept.Conversation, Model: kept.Model, Members: kept.Members,
	})
}

// Where the Macs are not there in time, the person says when to go on.
func TestComesBackWithoutTheOthers(t *testing.T) {
	d := newTestDesk(t, session.Model{Name: "tiny", Path: "/tiny"})
	id := halfAnswer(t, d)
	d.node.chat = func(_ context.Context, _ inference.Request, emit func(inference.Delta)) (inference.Stats, error) {
		emit(inference.Delta{Text: " answer"})
		return inference.Stats{}, nil
	}
	d.showChat()
	b := d.chat.back
	d.chat.open(id)
	b.standing = session.Standing{Chat: true, Conversation: id, Model: "/tiny", Members: []string{"gone"}}
	b.cut = []int64{id}
	b.rejoin(b.standing, 1) // a nanosecond
	d.until(t, func() bool { return b.again.Visible() })
	require.Equal(t, tr("back.happened")+" "+tr("back.late"), b.label.Text)
	b.pressed()
	require.False(t, b.again.Visible())
	d.until(t, func() bool {
		rows := d.chat.thread.rows
		return len(rows) == 2 && rows[1].message.Status == history.StatusDone
	})
	require.Equal(t, "half an answer", d.chat.thread.rows[1].body.shown)
	b.hide()
	require.False(t, b.box.Visible())
}
