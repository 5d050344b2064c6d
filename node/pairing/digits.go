package pairing

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
)

// What is hashed never means two things: it begins with one of these, and every
// field has its length before it.
const (
	commitmentDomain = "daisy pairing 1: commitment"
	digitsDomain     = "daisy pairing 1: digits"
	againDomain      = "daisy pairing 1: digits again"
)

// The roles, as they are hashed.
const (
	initiator = "initiator"
	responder = "responder"
)

// hashOf is SHA-256 over the fields, each after its length as a big-endian
// uint32.
func hashOf(fields ...[]byte) hash {
	h := sha256.New()
	var length [4]byte
	for _, f := range fields {
		binary.BigEndian.PutUint32(length[:], uint32(len(f)))
		h.Write(length[:])
		h.Write(f)
	}
	return hash(h.Sum(nil))
}

// party is one side of a transcript.
type party struct {
	key        ed25519.PublicKey
	name       string
	commitment hash
	nonce      hash
}

// commit is the commitment of the side with that role.
func commit(role string, own, other ed25519.PublicKey, name string, nonce hash) hash {
	return hashOf([]byte(commitmentDomain), []byte(role), own, other, []byte(name), nonce[:])
}

// digits is what both screens show: six, from everything that was said. First is
// the initiator.
func digits(first, second party) string {
	sum := hashOf([]byte(digitsDomain), first.key, second.key, []byte(first.name), []byte(second.name),
		first.commitment[:], second.commitment[:], first.nonce[:], second.nonce[:])
	return sixOf(sum)
}

// sixOf makes six digits of a hash, each number as likely as any other: its four
// big-endian words in turn, the first that lies below the greatest multiple of a
// million; when none does, those of the next hash.
func sixOf(sum hash) string {
	const million = 1_000_000
	const limit = math.MaxUint64 - (math.MaxUint64%million+1)%million // the last word that counts
	for {
		for w := 0; w < len(sum); w += 8 {
			if v := binary.BigEndian.Uint64(sum[w:]); v <= limit {
				return fmt.Sprintf("%06d", v%million)
			}
		}
		sum = hashOf([]byte(againDomain), sum[:])
	}
}
