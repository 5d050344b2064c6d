package inference

import (
	"errors"
	"fmt"
	"slices"

	"daisy/inference/chat"
	"daisy/inference/gguf"
	"daisy/inference/stream"
)

// readTemplate takes the file's own chat template, or a plain default.
func (e *Engine) readTemplate(f *gguf.File) (err error) {
	source, _ := f.String("tokenizer.chat_template")
	special := chat.Special{}
	if id, ok := e.tokens.BOS(); ok {
		special.BOS = e.tokens.TokenText(id)
	}
	if id, ok := e.tokens.EOS(); ok {
		special.EOS = e.tokens.TokenText(id)
	}
	if e.template, err = chat.New(source, special); err != nil {
		return fmt.Errorf("chat template: %w", err)
	}
	e.info.NoTemplate = e.template.Default()
	e.harmony = stream.SpeaksHarmony(source)
	return nil
}

// render turns messages into prompt text. A template that refuses a system
// message gets it as the beginning of the first question.
func (e *Engine) render(messages []chat.Message) (string, error) {
	opt := chat.Options{AddGenerationPrompt: true}
	text, err := e.template.Render(messages, opt)
	var refused *chat.Refused
	if errors.As(err, &refused) && len(messages) > 1 && messages[0].Role == "system" && messages[1].Role == "user" {
		merged := slices.Clone(messages[1:])
		merged[0].Content = messages[0].Content + "\n\n" + merged[0].Content
		return e.template.Render(merged, opt)
	}
	return text, err
}
