package chat

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nikolalohinski/gonja/v2/config"
	"github.com/nikolalohinski/gonja/v2/exec"
)

// Limits on a template and on one rendering.
const (
	MaxTemplateBytes = 256 << 10
	maxDepth         = 64 // of brackets and blocks in the source, and of macro calls
	maxOutput        = 64 << 20
	defaultLimit     = 10 * time.Second // for one rendering; real templates take milliseconds
)

// Message is one turn of a conversation. Role is "system", "user", "assistant" or what else the template knows.
type Message struct {
	Role, Content string
}

// Special holds the spelling of the tokens that templates put around a conversation.
type Special struct {
	BOS, EOS string
}

// Options are the inputs of a rendering beside the messages.
type Options struct {
	// AddGenerationPrompt ends the prompt where the assistant is to speak.
	AddGenerationPrompt bool
	// EnableThinking is passed on to templates that know the switch; nil leaves it to them.
	EnableThinking *bool
	// Tools are JSON descriptions of functions the model may call, one each.
	Tools []json.RawMessage
	// Now is the time for templates that give a date; zero means the present.
	Now time.Time
}

// Refused is the error of a template that rejects the conversation, such as one that knows no system role.
type Refused struct {
	Reason string // the template's own words
}

func (e *Refused) Error() string { return "the model's chat template refuses: " + e.Reason }

// chatML is what a model without a template gets: the most widely understood form.
const chatML = "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + " +
	"'<|im_end|>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"

// Template is a parsed chat template.
type Template struct {
	source    string
	special   Special
	parsed    *exec.Template
	isDefault bool
	limit     time.Duration
}

// New parses a template. An empty source gives the ChatML template, and Default tells so. The error says what is wrong
// or not supported.
func New(source string, special Special) (*Template, error) {
	t := &Template{source: source, special: special, limit: defaultLimit}
	if strings.TrimSpace(source) == "" {
		t.source, t.isDefault = chatML, true
	}
	prepared, err := prepare(t.source)
	if err != nil {
		return nil, fmt.Errorf("chat template: %w", err)
	}
	cfg := config.New()
	cfg.TrimBlocks, cfg.LeftStripBlocks = true, true
	err = contain(func() (err error) {
		t.parsed, err = exec.NewTemplate(onlyName, cfg, memory(prepared), environment())
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("chat template: %w", shorten(err))
	}
	return t, nil
}

// Default reports whether the model had no template, so that the ChatML form is a guess the user should know of.
func (t *Template) Default() bool { return t.isDefault }

// Source returns the template's text.
func (t *Template) Source() string { return t.source }

// Render returns the prompt for messages. It does not block, and takes milliseconds. A *Refused error carries the
// template's own objection to the conversation.
func (t *Template) Render(messages []Message, opt Options) (string, error) {
	tools, err := decodeTools(opt.Tools)
	if err != nil {
		return "", fmt.Errorf("chat template: tools: %w", err)
	}
	size := 0
	turns := make(list, len(messages))
	for i, m := range messages {
		turns[i] = map[string]any{"role": m.Role, "content": m.Content}
		size += len(m.Content)
	}
	if opt.Now.IsZero() {
		opt.Now = time.Now()
	}
	g := newGuard(size, t.limit)
	data := map[string]any{
		"messages": turns, "tools": tools, "documents": nil, "add_generation_prompt": opt.AddGenerationPrompt,
		"bos_token": t.special.BOS, "eos_token": t.special.EOS, guardName: g,
		"strftime_now": func(format string) string { return strftime(opt.Now, format) },
		"raise_exception": func(reason string) (string, error) {
			g.refused = &Refused{reason}
			return "", g.refused
		},
	}
	if opt.EnableThinking != nil {
		data["enable_thinking"] = *opt.EnableThinking
	}
	out := &output{guard: g}
	err = contain(func() error { return t.parsed.Execute(out, exec.NewContext(data)) })
	switch {
	case g.refused != nil:
		return "", g.refused
	case g.err != nil:
		return "", fmt.Errorf("chat template: %w", g.err)
	case err != nil:
		return "", fmt.Errorf("chat template: %w", shorten(err))
	}
	return out.b.String(), nil
}

// contain turns a panic of the library on a strange template into an error.
func contain(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("cannot be run: %v", r)
		}
	}()
	return f()
}

// shorten keeps the last and most telling part of gonja's errors, which quote the whole template, on one line.
func shorten(err error) error {
	const most = 200
	s := strings.Join(strings.Fields(err.Error()), " ")
	if len(s) > most {
		s = "…" + strings.ToValidUTF8(s[len(s)-most:], "")
	}
	return errors.New(s)
}
