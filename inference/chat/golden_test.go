package chat

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestPublicTemplates compares with what transformers renders (testdata/make_golden.py).
func TestPublicTemplates(t *testing.T) {
	var golden struct {
		Conversations map[string][]Message
		Tools         []json.RawMessage
		Cases         []struct {
			Template, Conversation string
			Generate, Tools        bool
			Thinking               *bool
			Want, Refused          string
		}
	}
	b, err := os.ReadFile(filepath.Join("testdata", "golden.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &golden))

	templates := map[string]*Template{}
	for _, c := range golden.Cases {
		tmpl := templates[c.Template]
		if tmpl == nil {
			source, err := os.ReadFile(filepath.Join("testdata", "templates", c.Template))
			require.NoError(t, err)
			tmpl, err = New(string(source), Special{BOS: "<s>", EOS: "</s>"})
			require.NoError(t, err, c.Template)
			require.False(t, tmpl.Default())
			templates[c.Template] = tmpl
		}
		opt := Options{
			AddGenerationPrompt: c.Generate, EnableThinking: c.Thinking,
			Now: time.Date(2026, 3, 9, 14, 5, 0, 0, time.UTC),
		}
		if c.Tools {
			opt.Tools = golden.Tools
		}
		got, err := tmpl.Render(golden.Conversations[c.Conversation], opt)
		if c.Refused != "" {
			var refused *Refused
			require.ErrorAs(t, err, &refused, c.Template)
			assert.Equal(t, c.Refused, refused.Reason)
			continue
		}
		require.NoError(t, err, "%s %s", c.Template, c.Conversation)
		assert.Equal(t, c.Want, got, "%s %s generate=%v tools=%v", c.Template, c.Conversation, c.Generate, c.Tools)
	}
	assert.GreaterOrEqual(t, len(templates), 15)
}
