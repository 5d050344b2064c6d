package history

import (
	"errors"
	"time"
)

// Errors that callers tell apart.
var (
	// ErrNewer: a later version of the program wrote the file, which was left
	// untouched; update the program.
	ErrNewer = errors.New("the history was written by a newer version of Daisy")
	// ErrDamaged: the file is no history of ours or is damaged, and was left
	// untouched; restore it from a backup or move it away.
	ErrDamaged = errors.New("the history file is damaged or not a history of Daisy")
	// ErrNotFound: the conversation or message does not exist (any more).
	ErrNotFound = errors.New("not found in the history")
	// ErrClosed: the Store or the Answer was closed before.
	ErrClosed = errors.New("the history is closed")
)

// Role says who wrote a message.
type Role string

// The roles of chat templates.
const (
	RoleSystem    Role = "system"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
)

// Status is where a message stands.
type Status string

// A message begins as streaming when it is an answer, and ends as one of the
// others.
const (
	StatusStreaming   Status = "streaming"   // being written now
	StatusDone        Status = "done"        // complete
	StatusStopped     Status = "stopped"     // the person stopped it; text kept
	StatusFailed      Status = "failed"      // Error says why; text kept
	StatusInterrupted Status = "interrupted" // the program ended in the middle
)

// Conversation is a thread of messages.
type Conversation struct {
	ID      int64
	Title   string // may be empty
	Created time.Time
	Updated time.Time // of its newest message
}

// Stats measures an answer. Zero means unknown.
type Stats struct {
	PromptTokens           int
	GeneratedTokens        int
	PrefillTokensPerSecond float64
	DecodeTokensPerSecond  float64
	DroppedMessages        int    // oldest ones of the conversation, which made room
	Stop                   string // why it ended, as inference.StopReason
}

// Message is one turn of a conversation.
type Message struct {
	ID           int64
	Conversation int64
	Parent       int64 // the message this one answers; 0 for the first
	Role         Role
	Content      string
	Reasoning    string // the model's thinking, shown folded away
	Status       Status
	Error        string // in words, with StatusFailed
	Model        string // that wrote an answer
	Stats        Stats
	Created      time.Time
	Updated      time.Time
}

// Outcome ends an answer.
type Outcome struct {
	Status Status // not StatusStreaming
	Error  string // in words, with StatusFailed
	Stats  Stats
}
