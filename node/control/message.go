package control

import (
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"unicode"
	"unicode/utf8"

	"daisy/node/discovery"
	"daisy/node/identity"
)

// Protocol is the version of the control protocol that this program speaks.
const Protocol = 2

const (
	maxMessage  = 64 << 10 // bytes, the line's end included
	maxMembers  = 32
	maxAddrs    = 16
	maxReason   = 300
	maxNameByte = 200 // of a model
)

// VersionError: the other node speaks another version of the protocol. One of
// the two must be updated.
type VersionError struct{ Theirs int }

func (e *VersionError) Error() string {
	return fmt.Sprintf("it speaks version %d of Daisy's protocol, this node version %d; install the same Daisy on both",
		e.Theirs, Protocol)
}

// Hello is what a node says of itself: the first three to anybody, the rest to
// those it is paired with.
type Hello struct {
	Version     int         `json:"v"`
	ID          identity.ID `json:"id"`
	Name        string      `json:"name"`
	Paired      bool        `json:"paired,omitempty"` // it trusts whom it says this to
	Cores       int         `json:"cores,omitempty"`
	MemoryBytes int64       `json:"memory_bytes,omitempty"`
	Busy        bool        `json:"busy,omitempty"` // in a group
}

// Message is one message of a group's stream: exactly one of the pointers is
// set.
type Message struct {
	Version  int       `json:"v"`
	Invite   *Invite   `json:"invite,omitempty"`   // leader: will you?
	Answer   *Answer   `json:"answer,omitempty"`   // member
	Start    *Start    `json:"start,omitempty"`    // leader: all will
	Progress *Progress `json:"progress,omitempty"` // member: while it loads
	Ready    *Ready    `json:"ready,omitempty"`    // member: loaded
	Running  *Running  `json:"running,omitempty"`  // leader: all are loaded
	End      *End      `json:"end,omitempty"`      // either: the last message
}

// Invite asks a node to join a group. A member's rank is its place in Members;
// the leader is the first.
type Invite struct {
	Epoch     uint64   `json:"epoch"`
	Model     Model    `json:"model"`
	Members   []Member `json:"members"`
	Context   int      `json:"context"`   // positions, 0: the engine's default
	Sequences int      `json:"sequences"` // answers at once, 0: the engine's default
	Cache     int      `json:"cache"`     // precision of the KV cache, as inference.CacheType
	// WithinMS is how long the leader waits for an answer.
	WithinMS int64 `json:"within_ms"`
	// Signature is the leader's under epoch and members; see Sign.
	Signature []byte `json:"signature,omitempty"`
}

// Model names the model that every member must have.
type Model struct {
	Name         string `json:"name"`
	Fingerprint  string `json:"fingerprint"`
	Bytes        int64  `json:"bytes"`
	Architecture string `json:"architecture"`
}

// Member is one rank of a group as the leader knows it.
type Member struct {
	ID    identity.ID      `json:"id"`
	Name  string           `json:"name"`
	Addrs []netip.AddrPort `json:"addrs"`
}

// Answer to an invitation. A refusal says why, in words for people.
type Answer struct {
	Accept bool   `json:"accept"`
	Reason string `json:"reason,omitempty"`
	// BeatPort is where the member's heartbeat listens (UDP); 0 if it has none.
	BeatPort uint16 `json:"beat_port,omitempty"`
}

// Start tells a member that all have accepted: connect, load.
type Start struct {
	Epoch uint64 `json:"epoch"`
	// BeatPorts are the ranks' heartbeats, 0 for one that has none; nil from a
	// leader that knows no heartbeats.
	BeatPorts []uint16 `json:"beat_ports,omitempty"`
}

// Progress counts the bytes of a member's weights that are loaded.
type Progress struct {
	Loaded int64 `json:"loaded"`
	Total  int64 `json:"total"`
}

// Ready says that a member can compute.
type Ready struct {
	WeightBytes int64 `json:"weight_bytes"`
}

// Running tells the members what each rank holds.
type Running struct {
	WeightBytes []int64 `json:"weight_bytes"` // by rank
}

// EndKind says why a membership ends, for programs.
type EndKind string

// The kinds.
const (
	EndClosed EndKind = "closed" // the leader ended the group
	EndLeft   EndKind = "left"   // Node left
	EndLost   EndKind = "lost"   // Node was lost
	EndFailed EndKind = "failed" // anything else
)

// End is the last message of a stream.
type End struct {
	Kind   EndKind     `json:"kind"`
	Node   identity.ID `json:"node,omitempty"` // whom it is about
	Reason string      `json:"reason"`         // in words
}

// encode writes m as one line.
func encode(m Message) ([]byte, error) {
	m.Version = Protocol
	line, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	if len(line) >= maxMessage {
		return nil, fmt.Errorf("a message of %d bytes is too long", len(line))
	}
	return append(line, '\n'), nil
}

// decode reads and checks one line. Unknown fields are ignored: the next
// version may add some.
func decode(line []byte) (Message, error) {
	if len(line) > maxMessage {
		return Message{}, fmt.Errorf("a message of more than %d bytes", maxMessage)
	}
	var version struct {
		V int `json:"v"`
	}
	if err := json.Unmarshal(line, &version); err != nil {
		return Message{}, fmt.Errorf("no message: %w", err)
	}
	if version.V != Protocol {
		return Message{}, &VersionError{Theirs: version.V}
	}
	var m Message
	if err := json.Unmarshal(line, &m); err != nil {
		return Message{}, fmt.Errorf("no message: %w", err)
	}
	return m, m.check()
}

func (m *Message) check() error {
	n := 0
	for _, set := range []bool{m.Invite != nil, m.Answer != nil, m.Start != nil, m.Progress != nil, m.Ready != nil, m.Running != nil, m.End != nil} {
		if set {
			n++
		}
	}
	if n != 1 {
		return fmt.Errorf("a message with %d contents, not one", n)
	}
	switch {
	case m.Invite != nil:
		return m.Invite.check()
	case m.Answer != nil:
		m.Answer.Reason = CleanReason(m.Answer.Reason)
	case m.Start != nil:
		if n := len(m.Start.BeatPorts); n > maxMembers {
			return fmt.Errorf("heartbeats of %d ranks", n)
		}
	case m.Progress != nil:
		if p := m.Progress; p.Loaded < 0 || p.Total < p.Loaded {
			return fmt.Errorf("progress of %d in %d bytes", p.Loaded, p.Total)
		}
	case m.Ready != nil:
		if m.Ready.WeightBytes < 0 {
			return errors.New("a negative weight")
		}
	case m.Running != nil:
		if n := len(m.Running.WeightBytes); n > maxMembers {
			return fmt.Errorf("%d ranks", n)
		}
		for _, b := range m.Running.WeightBytes {
			if b < 0 {
				return errors.New("a negative weight")
			}
		}
	case m.End != nil:
		m.End.Reason = CleanReason(m.End.Reason)
		if m.End.Node != "" {
			_, err := identity.ParseID(string(m.End.Node))
			return err
		}
	}
	return nil
}

func (i *Invite) check() error {
	const maxCount = 1 << 24
	switch {
	case i.Epoch == 0:
		return errors.New("an invitation without an epoch")
	case len(i.Members) < 2 || len(i.Members) > maxMembers:
		return fmt.Errorf("a group of %d members", len(i.Members))
	case i.Context < 0 || i.Context > maxCount || i.Sequences < 0 || i.Sequences > maxCount:
		return fmt.Errorf("%d answers at once of %d positions", i.Sequences, i.Context)
	case i.Cache < 0 || i.Cache > maxCount:
		return fmt.Errorf("a KV cache of kind %d", i.Cache)
	case len(i.Signature) > ed25519.SignatureSize:
		return fmt.Errorf("a signature of %d bytes", len(i.Signature))
	case i.WithinMS <= 0:
		return errors.New("an invitation without time to answer")
	}
	if err := i.Model.check(); err != nil {
		return err
	}
	seen := map[identity.ID]bool{}
	for _, m := range i.Members {
		if _, err := identity.ParseID(string(m.ID)); err != nil {
			return err
		}
		if seen[m.ID] {
			return fmt.Errorf("node %s is a member twice", m.ID.Short())
		}
		seen[m.ID] = true
		if m.Name == "" || discovery.CleanName(m.Name) != m.Name {
			return fmt.Errorf("the name %.80q is not fit to be shown", m.Name)
		}
		if len(m.Addrs) > maxAddrs {
			return fmt.Errorf("%d addresses of one node", len(m.Addrs))
		}
		for _, a := range m.Addrs {
			if !a.IsValid() || a.Port() == 0 || len(a.Addr().Zone()) > 64 {
				return fmt.Errorf("the address %.80q", a)
			}
		}
	}
	return nil
}

func (m *Model) check() error {
	if sum, err := hex.DecodeString(m.Fingerprint); err != nil || len(sum) != 32 {
		return fmt.Errorf("%.80q is no fingerprint of a model", m.Fingerprint)
	}
	if m.Bytes < 0 {
		return errors.New("a model of negative length")
	}
	m.Name, m.Architecture = clean(m.Name, maxNameByte), clean(m.Architecture, maxNameByte)
	return nil
}

// CleanReason makes words from another node fit to be shown: one line of
// printable characters, 300 bytes.
func CleanReason(s string) string { return clean(s, maxReason) }

func clean(s string, nBytes int) string {
	if len(s) > 4*nBytes {
		s = s[:4*nBytes]
	}
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case r == utf8.RuneError || !unicode.IsPrint(r):
			return -1
		}
		return r
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	for len(s) > nBytes {
		_, size := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-size]
	}
	return strings.TrimSpace(s)
}
