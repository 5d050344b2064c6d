package inference

import (
	"context"
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

// Chat answers a request on rank 0. It blocks until the answer has ended and
// calls emit, in order and from this goroutine, with text as it comes. When ctx
// ends or the group fails, what was emitted stands, Stats counts it, and the
// error says why. Requests beyond Options.Sequences wait their turn.
func (e *Engine) Chat(ctx context.Context, req Request, emit func(Delta)) (Stats, error) {
	q, reading, err := e.newSequence(ctx, req)
	if err != nil {
		return Stats{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	q.ctx = ctx
	if err := e.submit(ctx, q); err != nil {
		return Stats{}, err
	}
	text := stream.New(reading)
	show := func(d stream.Delta) {
		if !d.Empty() {
			emit(Delta(d))
		}
	}
	var piece []byte
	for id := range q.out {
		if text.Stopped() {
			continue // the loop has not seen the cancellation yet
		}
		if e.tokens.IsControl(id) {
			show(text.Control(e.tokens.TokenText(id)))
		} else {
			piece = e.tokens.AppendPiece(piece[:0], id)
			show(text.Write(piece))
		}
		if text.Stopped() {
			cancel()
		}
	}
	if text.Stopped() {
		q.stats.Stop, q.err = StopEnd, nil
	} else {
		show(text.Flush())
	}
	return q.stats, q.err
}

// submit hands the sequence to the loop.
func (e *Engine) submit(ctx context.Context, q *sequence) error {
	if e.info.Rank != 0 {
		return fmt.Errorf("rank %d follows; requests go to rank 0", e.info.Rank)
	}
	select {
	case e.requests <- q:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-e.done:
		return e.err
	}
}
