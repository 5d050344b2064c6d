package session

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"daisy/app/history"
	"daisy/inference"
	"daisy/inference/chat"
)

// cut leaves a conversation as a program that died in mid-answer does.
func cut(t *testing.T, s *Session, conv int64, text, reasoning string) (question, half history.Message) {
	t.Helper()
	question, err := s.Store().AddMessage(t.Context(), history.Message{Conversation: conv, Role: history.RoleUser, Content: "q"})
	require.NoError(t, err)
	half, err = s.Store().AddMessage(t.Context(), history.Message{
		Conversation: conv, Parent: question.ID, Role: history.RoleAssistant, Content: text, Reasoning: reasoning, Status: history.StatusInterrupted,
	})
	require.NoError(t, err)
	return question, half
}

// goOn continues and returns what was told of it.
func goOn(t *testing.T, s *Session, conv int64) (updates []Update) {
	t.Helper()
	ended := make(chan Update, 100)
	s.Continue(conv, func(u Update) { ended <- u }, func(err error) { t.Error(err) })
	for {
		select {
		case u := <-ended:
			updates = append(updates, u)
			if u.Kind == Ended {
				return updates
			}
		case <-time.After(10 * time.Second):
			require.FailNow(t, "it does not end")
		}
	}
}

func TestContinue(t *testing.T) {
	s, conv := newSession(t, "be brief")
	question, half := cut(t, s, conv, "half an", "")
	is, err := s.CutOff(t.Context(), conv)
	require.NoError(t, err)
	require.True(t, is)
	var asked []inference.Request
	s.Use(says(&asked, " answer", "."), "tiny")
	updates := goOn(t, s, conv)
	require.Equal(t, "half an", asked[0].Begun)
	require.Equal(t, []chat.Message{{Role: "system", Content: "be brief"}, {Role: "user", Content: "q"}}, asked[0].Messages)
	require.Equal(t, Began, updates[0].Kind)
	require.Equal(t, question.ID, updates[0].Question.ID)
	require.Equal(t, "half an", updates[0].Answer.Content)
	require.Len(t, updates, 4)
	end := updates[3].Answer
	require.Equal(t, half.ID, end.ID)
	require.Equal(t, "half an answer.", end.Content)
	require.Equal(t, history.StatusDone, end.Status)
	is, err = s.CutOff(t.Context(), conv)
	require.NoError(t, err)
	require.False(t, is)

	s.Close() // until the first is over
	s, conv = newSession(t, "")
	s.Use(says(&asked), "tiny")
	failed := make(chan error, 1)
	s.Continue(conv, func(Update) { t.Error("nothing is cut off") }, func(err error) { failed <- err })
	require.ErrorIs(t, <-failed, history.ErrComplete)
}

// Where the model cannot go on from the half, it stays, and the answer is made
// anew below it. The next question follows the new one.
func TestContinueAsABranch(t *testing.T) {
	thinker := func(asked *[]inference.Request) askerFunc {
		return func(ctx context.Context, r inference.Request, emit func(inference.Delta)) (inference.Stats, error) {
			if r.Begun != "" {
				return inference.Stats{}, fmt.Errorf("no: %w", inference.ErrUnsupported)
			}
			return says(asked, "whole")(ctx, r, emit)
		}
	}
	for _, reasoning := range []string{"", "hm"} {
		s, conv := newSession(t, "")
		question, half := cut(t, s, conv, "half", reasoning)
		var asked []inference.Request
		s.Use(thinker(&asked), "tiny")
		updates := goOn(t, s, conv)
		require.Len(t, updates, 3)
		end := updates[2].Answer
		require.NotEqual(t, half.ID, end.ID)
		require.Equal(t, question.ID, end.Parent)
		require.Equal(t, "whole", end.Content)
		kept, err := s.Store().Message(t.Context(), half.ID)
		require.NoError(t, err)
		require.Equal(t, "half", kept.Content)
		require.Equal(t, history.StatusInterrupted, kept.Status)
		require.Empty(t, kept.Error)

		require.Eventually(t, func() bool { return !s.Running(conv) }, 10*time.Second, time.Millisecond)
		_, err = s.Ask(t.Context(), conv, "next", func(Update) {})
		require.NoError(t, err)
		require.Equal(t, []chat.Message{{Role: "user", Content: "q"}, {Role: "assistant", Content: "whole"}, {Role: "user", Content: "next"}},
			asked[len(asked)-1].Messages)
	}
}

// Rejoin waits until everybody is there, joins once and says how that ended.
func TestRejoin(t *testing.T) {
	c := newCluster(t)
	was := Standing{Model: "/models/big", Members: []string{"b"}}
	rejoin := func(ctx context.Context) <-chan error {
		done := make(chan error, 1)
		go func() { done <- c.Rejoin(ctx, was) }()
		return done
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	done := rejoin(ctx)
	late := errors.New("too late")
	cancel(late)
	err := <-done
	require.ErrorIs(t, err, ErrNotRejoined)
	require.ErrorIs(t, err, late)
	require.Empty(t, c.node.joins)

	done = rejoin(t.Context())
	c.node.mu.Lock()
	c.node.peers = []Peer{{ID: "a", Ready: true}, {ID: "b", Ready: true}}
	c.node.mu.Unlock()
	c.node.changed(nil)
	j := <-c.node.joins
	require.Equal(t, []string{"b"}, j.members)
	require.Equal(t, "/models/big", j.model.Path)
	refused := errors.New("it does not want")
	j.reply <- joined{nil, refused}
	err = <-done
	require.ErrorIs(t, err, ErrNotRejoined)
	require.ErrorIs(t, err, refused)

	done = rejoin(t.Context())
	j = <-c.node.joins
	j.reply <- joined{newGroup(1, "self"), nil}
	require.NoError(t, <-done)
	require.NoError(t, c.Rejoin(t.Context(), was), "it is there")
	require.ErrorIs(t, c.Rejoin(t.Context(), Standing{}), ErrNoModel)
}
