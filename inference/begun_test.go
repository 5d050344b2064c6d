package inference

import (
	"context"
	"testing"

	"daisy/inference/chat"
	"daisy/inference/gguf"
	"daisy/inference/modeltest"

	"github.com/stretchr/testify/require"
)

// The model reads what is left of an answer as if it had just written it.
func TestBegunAnswerGoesOn(t *testing.T) {
	e := solo(t, tiny(t, modeltest.Options{}), Options{})
	turns := []chat.Message{{Role: "user", Content: "A question"}}
	text, err := e.render(turns)
	require.NoError(t, err)
	p, err := e.prompt(context.Background(), Request{Messages: turns, Begun: "half an "})
	require.NoError(t, err)
	require.Equal(t, e.tokens.Encode(text+"half an ", true, true), p.tokens)
	require.False(t, p.reading.TrimStart, "a space may come next")
	require.Zero(t, p.dropped)

	_, first := ask(t, e, Request{Messages: turns, MaxTokens: 4, IgnoreEnd: true})
	_, rest := ask(t, e, Request{Messages: turns, Begun: "half an ", MaxTokens: 4, IgnoreEnd: true})
	require.Equal(t, len(p.tokens), rest.PromptTokens)
	require.Greater(t, rest.PromptTokens, first.PromptTokens)
	require.Positive(t, rest.CachedTokens, "the question is not computed again")
}

// The thoughts before a half answer are not in it.
func TestBegunAnswerOfAThinkerIsRefused(t *testing.T) {
	path := modeltest.Edit(t, tiny(t, modeltest.Options{}), []gguf.KV{{
		Key: "tokenizer.chat_template", Value: "{{ messages[0].content }}{% if add_generation_prompt %}<think>{% endif %}",
	}})
	e := solo(t, path, Options{})
	turns := []chat.Message{{Role: "user", Content: "A question"}}
	_, err := e.Chat(context.Background(), Request{Messages: turns, Begun: "half", MaxTokens: 2}, func(Delta) {})
	require.ErrorIs(t, err, ErrUnsupported)
	_, err = e.Chat(context.Background(), Request{Messages: turns, MaxTokens: 2}, func(Delta) {})
	require.NoError(t, err)
}
