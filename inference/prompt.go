package inference

import (
	"context"
	"fmt"
	"math/bits"
	"slices"
	"sort"

	"daisy/inference/chat"
	"daisy/inference/stream"
)

// rendered is a request's prompt in tokens, and how its answer is to be read.
type rendered struct {
	tokens  []int32
	reading stream.Options
	dropped int // messages that had to make room
}

// prompt renders and encodes a request's prompt. Where a conversation leaves too
// little of the context for an answer, its oldest turns make room; the system
// message and the last question stay.
func (e *Engine) prompt(ctx context.Context, req Request) (rendered, error) {
	if len(req.Messages) == 0 {
		return rendered{tokens: e.tokens.Encode(req.Prompt, true, false), reading: stream.Options{Stops: req.Stops}}, nil
	}
	room := e.info.ContextLength / 4 // for the answer
	if req.MaxTokens > 0 {
		room = min(room, req.MaxTokens)
	}
	turns := turnStarts(req.Messages)
	var p rendered
	var err error
	without := func(drop int) bool { // renders without that many turns, and tells whether that fits
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			p, err = e.renderWithout(req, turns, drop)
		}
		return err != nil || len(p.tokens)+room <= e.info.ContextLength
	}
	if without(0) || len(turns) < 2 {
		return p, err
	}
	last := len(turns) - 1
	drop := 1 + sort.Search(last-1, func(i int) bool { return without(1 + i) })
	// More than needed, by steps: the next questions then find this prompt's
	// beginning in the KV cache, instead of each beginning a turn later.
	step := 1 << bits.Len(uint(len(turns)-drop)/4)
	drop = min(last, (drop+step-1)/step*step)
	without(drop)
	return p, err
}

// turnStarts are the indices of the questions, which begin turns.
func turnStarts(messages []chat.Message) (at []int) {
	for i, m := range messages {
		if m.Role == "user" {
			at = append(at, i)
		}
	}
	return at
}

// renderWithout renders a request without its oldest drop turns.
func (e *Engine) renderWithout(req Request, turns []int, drop int) (p rendered, err error) {
	messages := req.Messages
	if drop > 0 {
		head := 0
		if messages[0].Role == "system" {
			head = 1
		}
		messages = append(slices.Clone(messages[:head]), messages[turns[drop]:]...)
	}
	text, err := e.render(messages)
	if err != nil {
		return p, fmt.Errorf("chat template: %w", err)
	}
	reasons := stream.OpensReasoning(text, nil)
	if req.Begun != "" && (reasons || e.harmony) {
		return p, fmt.Errorf("going on from the middle of an answer: %w: this model thinks before it answers", ErrUnsupported)
	}
	p.tokens = e.tokens.Encode(text+req.Begun, true, true)
	p.dropped = len(req.Messages) - len(messages)
	p.reading = stream.Options{Stops: req.Stops, InReasoning: reasons, Harmony: e.harmony, TrimStart: req.Begun == ""}
	return p, nil
}
