//go:build !headless

package ui

import (
	"testing"

	"daisy/app/history"

	"github.com/stretchr/testify/require"
)

// People are told when a chat has outgrown the model's context.
func TestFullContextIsTold(t *testing.T) {
	require.NoError(t, loadTranslations())
	m := history.Message{Status: history.StatusDone, Stats: history.Stats{GeneratedTokens: 3, DecodeTokensPerSecond: 10}}
	require.Equal(t, "10.0 tokens/s · 3 tokens", statWords(m))
	m.Stats.Stop, m.Stats.DroppedMessages = "full", 2
	require.Equal(t, "10.0 tokens/s · 3 tokens · Cut off: the model's memory for this chat is full"+
		" · The oldest messages no longer fit, so the model did not see them", statWords(m))
}
