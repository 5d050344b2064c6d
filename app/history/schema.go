package history

import (
	"context"
	"database/sql"
	"fmt"
)

// migrations bring the schema from version i to i+1. They are never changed
// once released; new ones are added at the end. testdata/schema.sql holds the
// result.
var migrations = []string{
	// 1: conversations and their messages. Times are Unix milliseconds.
	`
CREATE TABLE conversations (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    title      TEXT    NOT NULL DEFAULT '',
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
);
CREATE TABLE messages (
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    conversation_id  INTEGER NOT NULL REFERENCES conversations(id) ON DELETE CASCADE,
    parent_id        INTEGER REFERENCES messages(id) ON DELETE CASCADE,
    role             TEXT    NOT NULL CHECK (role IN ('system', 'user', 'assistant')),
    content          TEXT    NOT NULL DEFAULT '',
    reasoning        TEXT    NOT NULL DEFAULT '',
    status           TEXT    NOT NULL CHECK (status IN ('streaming', 'done', 'stopped', 'failed', 'interrupted')),
    error            TEXT    NOT NULL DEFAULT '',
    model            TEXT    NOT NULL DEFAULT '',
    prompt_tokens    INTEGER NOT NULL DEFAULT 0,
    generated_tokens INTEGER NOT NULL DEFAULT 0,
    prefill_tps      REAL    NOT NULL DEFAULT 0,
    decode_tps       REAL    NOT NULL DEFAULT 0,
    dropped_messages INTEGER NOT NULL DEFAULT 0,
    stop             TEXT    NOT NULL DEFAULT '',
    created_at       INTEGER NOT NULL,
    updated_at       INTEGER NOT NULL
);
CREATE INDEX messages_by_conversation ON messages(conversation_id, id);
CREATE INDEX messages_by_parent ON messages(parent_id);
CREATE INDEX messages_streaming ON messages(status) WHERE status = 'streaming';
CREATE INDEX conversations_by_update ON conversations(updated_at);
`,
}

// migrate brings the open database to the newest version, each step in its own
// transaction. A newer database and one of somebody else are refused before
// anything is written.
func migrate(ctx context.Context, db *sql.DB) error {
	version, err := userVersion(ctx, db)
	if err != nil {
		return err
	}
	switch {
	case version > len(migrations):
		return fmt.Errorf("%w (schema %d, this program knows %d)", ErrNewer, version, len(migrations))
	case version < 0:
		return fmt.Errorf("%w (schema %d)", ErrDamaged, version)
	case version == 0:
		var tables int
		if err := db.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema`).Scan(&tables); err != nil {
			return err
		}
		if tables > 0 {
			return fmt.Errorf("%w (a database of another program)", ErrDamaged)
		}
	}
	// Before the first write of ours; it stays in the file. For a new file
	// this is also what creates it.
	if _, err := db.ExecContext(ctx, `PRAGMA journal_mode = WAL`); err != nil {
		return err
	}
	for v := version; v < len(migrations); v++ {
		if err := step(ctx, db, v); err != nil {
			return fmt.Errorf("bringing the history to schema %d: %w", v+1, err)
		}
	}
	return nil
}

// step runs migration v in one transaction, unless another process was first.
func step(ctx context.Context, db *sql.DB, v int) error {
	tx, err := db.BeginTx(ctx, nil) // IMMEDIATE, see dsn
	if err != nil {
		return err
	}
	defer tx.Rollback() // no effect after Commit
	var now int
	if err := tx.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&now); err != nil {
		return err
	}
	if now != v {
		return nil
	}
	if _, err := tx.ExecContext(ctx, migrations[v]); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf(`PRAGMA user_version = %d`, v+1)); err != nil {
		return err
	}
	return tx.Commit()
}

func userVersion(ctx context.Context, db *sql.DB) (int, error) {
	var v int
	err := db.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&v)
	return v, err
}
