-- schema version 1
CREATE INDEX conversations_by_update ON conversations(updated_at);
CREATE INDEX messages_by_conversation ON messages(conversation_id, id);
CREATE INDEX messages_by_parent ON messages(parent_id);
CREATE INDEX messages_streaming ON messages(status) WHERE status = 'streaming';
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
