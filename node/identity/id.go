package identity

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
)

// ID names a node for ever: the SHA-256 of its Ed25519 public key in lower-case
// base32, IDLen characters. It fits a DNS label together with a short prefix.
type ID string

// IDLen is the length of every valid ID.
const IDLen = 52

var idEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// IDOf returns the ID of the node that holds key's private half.
func IDOf(key ed25519.PublicKey) ID {
	sum := sha256.Sum256(key)
	return ID(idEncoding.EncodeToString(sum[:]))
}

// ParseID checks text from outside. Only the one canonical spelling is an ID.
func ParseID(text string) (ID, error) {
	if len(text) != IDLen {
		return "", fmt.Errorf("a node id has %d characters, not %d", IDLen, len(text))
	}
	sum, err := idEncoding.DecodeString(text)
	if err != nil || idEncoding.EncodeToString(sum) != text {
		return "", fmt.Errorf("%q is not a node id", text)
	}
	return ID(text), nil
}

// Short is the ID's beginning, for people: enough to tell the nodes of a desk
// apart, never enough to trust one.
func (id ID) Short() string {
	if len(id) < 8 {
		return string(id)
	}
	return string(id[:8])
}
