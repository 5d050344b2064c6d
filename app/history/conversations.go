package history

import (
	"context"
	"database/sql"
	"fmt"
)

// CreateConversation adds an empty conversation.
func (s *Store) CreateConversation(ctx context.Context, title string) (Conversation, error) {
	t := now()
	res, err := s.db.ExecContext(ctx,
		`INSERT INTO conversations (title, created_at, updated_at) VALUES (?, ?, ?)`, title, t, t)
	if err != nil {
		return Conversation{}, fmt.Errorf("adding a conversation: %w", explain(err))
	}
	id, err := res.LastInsertId()
	if err != nil {
		return Conversation{}, fmt.Errorf("adding a conversation: %w", err)
	}
	return Conversation{ID: id, Title: title, Created: toTime(t), Updated: toTime(t)}, nil
}

// Conversations lists all, the one with the newest message first.
func (s *Store) Conversations(ctx context.Context) ([]Conversation, error) {
	rows, err := s.db.QueryContext(ctx,
		`SELECT id, title, created_at, updated_at FROM conversations ORDER BY updated_at DESC, id DESC`)
	if err != nil {
		return nil, fmt.Errorf("listing conversations: %w", explain(err))
	}
	defer rows.Close()
	var list []Conversation
	for rows.Next() {
		var c Conversation
		var created, updated int64
		if err := rows.Scan(&c.ID, &c.Title, &created, &updated); err != nil {
			return nil, fmt.Errorf("listing conversations: %w", err)
		}
		c.Created, c.Updated = toTime(created), toTime(updated)
		list = append(list, c)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("listing conversations: %w", explain(err))
	}
	return list, nil
}

// SetTitle names a conversation; ErrNotFound when it does not exist.
func (s *Store) SetTitle(ctx context.Context, conversation int64, title string) error {
	res, err := s.db.ExecContext(ctx, `UPDATE conversations SET title = ? WHERE id = ?`, title, conversation)
	return affected("naming a conversation", res, err)
}

// DeleteConversation removes a conversation with its messages; ErrNotFound
// when it does not exist. An answer still being written into it ends with
// ErrNotFound.
func (s *Store) DeleteConversation(ctx context.Context, conversation int64) error {
	res, err := s.db.ExecContext(ctx, `DELETE FROM conversations WHERE id = ?`, conversation)
	return affected("deleting a conversation", res, err)
}

func affected(what string, res sql.Result, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, explain(err))
	}
	n, err := res.RowsAffected()
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if n == 0 {
		return fmt.Errorf("%s: %w", what, ErrNotFound)
	}
	return nil
}
