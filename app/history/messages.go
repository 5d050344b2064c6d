package history

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

const messageColumns = `id, conversation_id, coalesce(parent_id, 0), role, content, reasoning, status, error, model,
	prompt_tokens, generated_tokens, prefill_tps, decode_tps, dropped_messages, stop, created_at, updated_at`

// Messages lists a conversation's messages in the order they were added.
func (s *Store) Messages(ctx context.Context, conversation int64) ([]Message, error) {
	rows, err := s.db.QueryContext(ctx,
		`SELECT `+messageColumns+` FROM messages WHERE conversation_id = ? ORDER BY id`, conversation)
	if err != nil {
		return nil, fmt.Errorf("reading messages: %w", explain(err))
	}
	defer rows.Close()
	var list []Message
	for rows.Next() {
		m, err := scanMessage(rows)
		if err != nil {
			return nil, fmt.Errorf("reading messages: %w", explain(err))
		}
		list = append(list, m)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("reading messages: %w", explain(err))
	}
	return list, nil
}

// Message reads one message; ErrNotFound when it does not exist.
func (s *Store) Message(ctx context.Context, id int64) (Message, error) {
	m, err := scanMessage(s.db.QueryRowContext(ctx, `SELECT `+messageColumns+` FROM messages WHERE id = ?`, id))
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrNotFound
	}
	if err != nil {
		return Message{}, fmt.Errorf("reading message %d: %w", id, explain(err))
	}
	return m, nil
}

func scanMessage(row interface{ Scan(...any) error }) (Message, error) {
	var m Message
	var created, updated int64
	err := row.Scan(&m.ID, &m.Conversation, &m.Parent, &m.Role, &m.Content, &m.Reasoning, &m.Status, &m.Error, &m.Model,
		&m.Stats.PromptTokens, &m.Stats.GeneratedTokens, &m.Stats.PrefillTokensPerSecond, &m.Stats.DecodeTokensPerSecond,
		&m.Stats.DroppedMessages, &m.Stats.Stop, &created, &updated)
	m.Created, m.Updated = toTime(created), toTime(updated)
	return m, err
}

// AddMessage adds a complete message. ID and times are set in the result, an
// empty Status means StatusDone. ErrNotFound when the conversation or the
// parent does not exist.
func (s *Store) AddMessage(ctx context.Context, m Message) (Message, error) {
	if m.Status == "" {
		m.Status = StatusDone
	}
	m, err := s.insert(ctx, m)
	if err != nil {
		return Message{}, fmt.Errorf("adding a message: %w", err)
	}
	return m, nil
}

// insert adds the row and moves its conversation to the top.
func (s *Store) insert(ctx context.Context, m Message) (Message, error) {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return m, explain(err)
	}
	defer tx.Rollback() // no effect after Commit
	t := now()
	var parent any
	if m.Parent != 0 {
		parent = m.Parent
	}
	res, err := tx.ExecContext(ctx, `INSERT INTO messages
		(conversation_id, parent_id, role, content, reasoning, status, error, model,
		 prompt_tokens, generated_tokens, prefill_tps, decode_tps, dropped_messages, stop,
		 created_at, updated_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		m.Conversation, parent, m.Role, m.Content, m.Reasoning, m.Status, m.Error, m.Model,
		m.Stats.PromptTokens, m.Stats.GeneratedTokens, m.Stats.PrefillTokensPerSecond, m.Stats.DecodeTokensPerSecond,
		m.Stats.DroppedMessages, m.Stats.Stop, t, t)
	if saysNoReference(err) {
		return m, ErrNotFound
	}
	if err != nil {
		return m, explain(err)
	}
	if _, err := tx.ExecContext(ctx, `UPDATE conversations SET updated_at = ? WHERE id = ?`, t, m.Conversation); err != nil {
		return m, explain(err)
	}
	if m.ID, err = res.LastInsertId(); err != nil {
		return m, err
	}
	if err := tx.Commit(); err != nil {
		return m, explain(err)
	}
	m.Created, m.Updated = toTime(t), toTime(t)
	return m, nil
}
