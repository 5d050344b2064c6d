package history

import (
	"context"
	"errors"
	"fmt"
)

// ErrComplete: the message is no answer that was cut off.
var ErrComplete = errors.New("the answer was not cut off")

// ContinueAnswer makes an answer that was cut off (StatusInterrupted, or
// StatusStreaming when the program that wrote it is known to be dead) stream
// again: Append adds to the text it has. The Answer must be finished, as that of
// BeginAnswer. ErrComplete for any other message.
func (s *Store) ContinueAnswer(ctx context.Context, id int64) (*Answer, error) {
	res, err := s.db.ExecContext(ctx, `UPDATE messages SET status = ?, updated_at = ? WHERE id = ? AND role = ? AND status IN (?, ?)`,
		StatusStreaming, now(), id, RoleAssistant, StatusInterrupted, StatusStreaming)
	if err = affected("going on with an answer", res, err); errors.Is(err, ErrNotFound) {
		return nil, fmt.Errorf("going on with an answer: %w", ErrComplete)
	}
	if err != nil {
		return nil, err
	}
	row, err := s.Message(ctx, id)
	if err != nil {
		return nil, err
	}
	return s.writeAnswer(row)
}
