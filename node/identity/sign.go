package identity

import (
	"crypto/ed25519"
	"fmt"
)

// Sign signs message as this node, for one purpose: Ed25519ctx of RFC 8032, so
// that what is signed for one purpose, or in a TLS handshake, is worth nothing
// for another. purpose has 1 to 255 bytes.
func (i *Identity) Sign(purpose string, message []byte) ([]byte, error) {
	return i.key.Sign(nil, message, &ed25519.Options{Context: purpose})
}

// Verify checks that the holder of key signed message for that purpose.
func Verify(key ed25519.PublicKey, purpose string, message, signature []byte) error {
	if len(key) != ed25519.PublicKeySize {
		return fmt.Errorf("a key of %d bytes", len(key))
	}
	return ed25519.VerifyWithOptions(key, message, signature, &ed25519.Options{Context: purpose})
}
