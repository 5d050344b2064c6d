package main

import (
	"context"
	"io"
	"testing"
	"time"

	"daisy/node"

	"github.com/stretchr/testify/require"
)

// keyboard hands out what the test types, and tells when more is wanted: what
// came before has been dealt with then.
type keyboard struct {
	typed  chan string
	wanted chan struct{}
}

func (k keyboard) Read(p []byte) (int, error) {
	k.wanted <- struct{}{}
	s, open := <-k.typed
	if !open {
		return 0, io.EOF
	}
	return copy(p, s), nil
}

// await takes from the channel, or fails the test.
func await[T any](t *testing.T, c <-chan T, what string) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(10 * time.Second):
		require.FailNow(t, what)
	}
	return v
}

// prompted tells when the question is on the screen.
type prompted chan struct{}

func (p prompted) Write(b []byte) (int, error) {
	p <- struct{}{}
	return len(b), nil
}

// Only what is typed while a question is open answers it.
func TestConsentIsToTheQuestionAsked(t *testing.T) {
	k := keyboard{make(chan string), make(chan struct{})}
	screen := make(prompted, 10)
	agree := newTerminal(k, screen).consent
	ask := func(ctx context.Context) <-chan bool {
		said := make(chan bool, 1)
		go func() { said <- agree(ctx, node.Invitation{Model: "tiny"}) }()
		await(t, screen, "no question")
		return said
	}
	enter := func(s string) {
		t.Helper()
		await(t, k.wanted, "nobody reads what is typed")
		k.typed <- s
	}

	enter("y\ny\n") // before any question
	await(t, k.wanted, "lines wait for a question")
	ctx, cancel := context.WithCancel(t.Context())
	said := ask(ctx)
	k.typed <- "n\n"
	require.False(t, await(t, said, "no answer"))

	await(t, k.wanted, "nobody reads what is typed")
	said = ask(ctx)
	k.typed <- "YES\ny\n"
	require.True(t, await(t, said, "no answer"))
	await(t, k.wanted, "lines wait for a question")
	said = ask(ctx) // and the other y was not for this one
	cancel()
	require.False(t, await(t, said, "the question stays"))
	await(t, screen, "too late")
	k.typed <- "y\n"
	await(t, k.wanted, "lines wait for a question")
	said = ask(t.Context())
	k.typed <- "n\n"
	require.False(t, await(t, said, "no answer"))

	await(t, k.wanted, "nobody reads what is typed")
	said = ask(t.Context())
	close(k.typed) // nobody is there any more
	require.False(t, await(t, said, "the question stays"))
	require.False(t, await(t, ask(t.Context()), "the question stays"))
}
