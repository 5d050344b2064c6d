package pairing

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"daisy/node/discovery"
)

// version of the messages and of what is hashed.
const version = 1

// maxLine is the longest message in bytes.
const maxLine = 1 << 10

// message is one line of JSON: exactly one of the pointers is set.
type message struct {
	Version int      `json:"v"`
	Offer   *offer   `json:"offer,omitempty"`
	Reveal  *reveal  `json:"reveal,omitempty"`
	Confirm *confirm `json:"confirm,omitempty"`
	End     *end     `json:"end,omitempty"`
}

// offer is the first message each way.
type offer struct {
	Name       string `json:"name"`
	Commitment hash   `json:"commitment"`
}

// reveal opens the commitment.
type reveal struct {
	Nonce hash `json:"nonce"`
}

// confirm: the person there found the digits to be the same.
type confirm struct{}

// end is the last message.
type end struct {
	Kind endKind `json:"kind"`
}

// endKind says why, for programs; each side has its own words for people.
type endKind string

const (
	endRefused  endKind = "refused"
	endExpired  endKind = "expired"
	endMismatch endKind = "mismatch"
	endBusy     endKind = "busy"
	endLocked   endKind = "locked"
	endClosed   endKind = "closed"
)

// meanings of an end to the side that receives it.
var meanings = map[endKind]error{
	endRefused: ErrPeerRefused, endExpired: ErrExpired, endMismatch: ErrMismatch,
	endBusy: ErrPeerBusy, endLocked: ErrPeerLocked, endClosed: ErrClosed,
}

// hash is 32 bytes, in JSON as lower-case hex.
type hash [32]byte

// MarshalText implements encoding.TextMarshaler.
func (h hash) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, h[:]), nil }

// UnmarshalText implements encoding.TextUnmarshaler; only one spelling counts.
func (h *hash) UnmarshalText(text []byte) error {
	if len(text) != 2*len(h) || !bytes.Equal(text, bytes.ToLower(text)) {
		return errors.New("not 32 bytes in lower-case hex")
	}
	_, err := hex.Decode(h[:], text)
	return err
}

func (m message) encode() ([]byte, error) {
	m.Version = version
	return json.Marshal(m)
}

// decode reads and checks one line.
func decode(line []byte) (message, error) {
	if len(line) > maxLine {
		return message{}, fmt.Errorf("a message of more than %d bytes", maxLine)
	}
	var v struct {
		V int `json:"v"`
	}
	if err := json.Unmarshal(line, &v); err != nil {
		return message{}, fmt.Errorf("no message: %w", err)
	}
	if v.V != version {
		return message{}, ErrVersion
	}
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		return message{}, fmt.Errorf("no message: %w", err)
	}
	n := 0
	for _, set := range []bool{m.Offer != nil, m.Reveal != nil, m.Confirm != nil, m.End != nil} {
		if set {
			n++
		}
	}
	switch {
	case n != 1:
		return message{}, fmt.Errorf("a message with %d contents, not one", n)
	case m.Offer != nil && (m.Offer.Name == "" || discovery.CleanName(m.Offer.Name) != m.Offer.Name):
		return message{}, fmt.Errorf("the name %.80q is not fit to be shown", m.Offer.Name)
	case m.Offer != nil && m.Offer.Commitment == hash{}, m.Reveal != nil && m.Reveal.Nonce == hash{}:
		return message{}, errors.New("a message without its 32 bytes")
	case m.End != nil && meanings[m.End.Kind] == nil:
		return message{}, fmt.Errorf("an end of the kind %.20q", m.End.Kind)
	}
	return m, nil
}
