package session

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestInvitations(t *testing.T) {
	var v Invitations
	require.False(t, v.Ask(t.Context(), Invitation{}), "nobody sees the question")

	changed := make(chan struct{}, 10)
	v.Notify(func() { changed <- struct{}{} })
	answers := make(chan bool, 2)
	for _, leader := range []string{"a", "b"} {
		go func() { answers <- v.Ask(t.Context(), Invitation{Leader: leader, Model: "m"}) }()
		<-changed
	}
	pending := v.Pending()
	require.Len(t, pending, 2)
	require.Equal(t, "a", pending[0].Leader)
	v.Answer(pending[1].ID, true)
	require.True(t, <-answers)
	v.Answer(pending[0].ID, false)
	require.False(t, <-answers)
	v.Answer(pending[0].ID, true) // settled already
	require.Empty(t, v.Pending())

	ctx, cancel := context.WithCancel(t.Context())
	go func() { answers <- v.Ask(ctx, Invitation{}) }()
	<-changed
	cancel()
	require.False(t, <-answers)
	<-changed // the question has gone
	require.Empty(t, v.Pending())
}
