package history

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"
)

const (
	flushEvery = 250 * time.Millisecond // from the first unwritten byte
	flushBytes = 16 << 10               // unwritten bytes that are written at once
	flushLimit = 10 * time.Second       // for one write in the background
)

// Answer writes one assistant message while it streams. Text reaches the disk
// at most flushEvery (and one write) after Append; Append itself never waits
// for the disk.
type Answer struct {
	store *Store
	row   Message
	kick  chan struct{} // capacity 1: there is text to write
	full  chan struct{} // capacity 1: there is much of it
	stop  chan struct{} // closed by Finish
	done  chan struct{} // closed when the writer goroutine has ended

	mu        sync.Mutex // guards the fields below
	text      strings.Builder
	reasoning strings.Builder
	finished  bool
}

// BeginAnswer adds an assistant message with StatusStreaming below parent. The
// Answer must be finished; Store.Close finishes what is left.
func (s *Store) BeginAnswer(ctx context.Context, conversation, parent int64, model string) (*Answer, error) {
	row, err := s.insert(ctx, Message{
		Conversation: conversation, Parent: parent, Role: RoleAssistant, Status: StatusStreaming, Model: model,
	})
	if err != nil {
		return nil, fmt.Errorf("adding an answer: %w", err)
	}
	return s.writeAnswer(row)
}

// writeAnswer begins to write into a row.
func (s *Store) writeAnswer(row Message) (*Answer, error) {
	a := &Answer{
		store: s,
		row:   row,
		kick:  make(chan struct{}, 1),
		full:  make(chan struct{}, 1),
		stop:  make(chan struct{}),
		done:  make(chan struct{}),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fmt.Errorf("writing an answer: %w", ErrClosed)
	}
	s.answers[a] = struct{}{}
	go a.write() // Finish waits for it
	return a, nil
}

// Message is the row as it was begun: ID, conversation, parent, model.
func (a *Answer) Message() Message { return a.row }

// Append adds text and reasoning to what will be written. It does not block;
// after Finish it does nothing.
func (a *Answer) Append(text, reasoning string) {
	if text == "" && reasoning == "" {
		return
	}
	a.mu.Lock()
	if a.finished {
		a.mu.Unlock()
		return
	}
	a.text.WriteString(text)
	a.reasoning.WriteString(reasoning)
	n := a.text.Len() + a.reasoning.Len()
	a.mu.Unlock()
	signal(a.kick)
	if n >= flushBytes {
		signal(a.full)
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// write flushes until Finish. A failed flush keeps its text for the next one;
// the last, in Finish, reports.
func (a *Answer) write() {
	defer close(a.done)
	for {
		select {
		case <-a.stop:
			return
		case <-a.kick:
		}
		select {
		case <-a.stop:
			return
		case <-time.After(flushEvery):
		case <-a.full:
		}
		ctx, cancel := context.WithTimeout(context.Background(), flushLimit)
		if err := a.flush(ctx, nil); err != nil {
			signal(a.kick)
		}
		cancel()
	}
}

// flush writes what was appended and, with an outcome, ends the row.
func (a *Answer) flush(ctx context.Context, end *Outcome) error {
	a.mu.Lock()
	text, reasoning := a.text.String(), a.reasoning.String()
	a.text.Reset()
	a.reasoning.Reset()
	a.mu.Unlock()

	query := `UPDATE messages SET content = content || ?, reasoning = reasoning || ?, updated_at = ?`
	args := []any{text, reasoning, now()}
	if end != nil {
		query += `, status = ?, error = ?, prompt_tokens = ?, generated_tokens = ?, prefill_tps = ?, decode_tps = ?,
			dropped_messages = ?, stop = ?`
		args = append(args, end.Status, end.Error, end.Stats.PromptTokens, end.Stats.GeneratedTokens,
			end.Stats.PrefillTokensPerSecond, end.Stats.DecodeTokensPerSecond, end.Stats.DroppedMessages, end.Stats.Stop)
	}
	res, err := a.store.db.ExecContext(ctx, query+` WHERE id = ?`, append(args, a.row.ID)...)
	if err = affected("writing an answer", res, err); err != nil {
		a.mu.Lock()
		newer, newerReasoning := a.text.String(), a.reasoning.String()
		a.text.Reset()
		a.text.WriteString(text + newer)
		a.reasoning.Reset()
		a.reasoning.WriteString(reasoning + newerReasoning)
		a.mu.Unlock()
	}
	return err
}

// Finish writes what is left and ends the message. It blocks for the write; a
// second call returns ErrClosed. When it fails the row stays as it was last
// written and is settled by the next Open.
func (a *Answer) Finish(ctx context.Context, end Outcome) error {
	if end.Status == StatusStreaming || end.Status == "" {
		return fmt.Errorf("writing an answer: status %q does not end it", end.Status)
	}
	a.mu.Lock()
	if a.finished {
		a.mu.Unlock()
		return fmt.Errorf("writing an answer: %w", ErrClosed)
	}
	a.finished = true
	a.mu.Unlock()
	close(a.stop)
	<-a.done
	err := a.flush(ctx, &end)
	a.store.mu.Lock()
	delete(a.store.answers, a)
	a.store.mu.Unlock()
	return err
}
