package heartbeat

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
)

// Key signs one direction of one pair.
type Key [32]byte

// label follows RFC 5705, section 4: names for private use begin so.
const label = "EXPERIMENTAL daisy heartbeat 1"

// Keys takes the keys of a pair of ranks from its TLS 1.3 connection: out for
// what self sends, in for what the peer sends; the handshake must be over. Both ends of the connection get
// the same two keys, the other way round; nobody else can.
func Keys(state tls.ConnectionState, epoch uint64, self, peer int) (out, in Key, err error) {
	if !state.HandshakeComplete {
		return Key{}, Key{}, errors.New("heartbeat keys before the end of the TLS handshake")
	}
	if out, err = direction(state, epoch, self, peer); err == nil {
		in, err = direction(state, epoch, peer, self)
	}
	if err != nil {
		return Key{}, Key{}, fmt.Errorf("heartbeat keys for rank %d: %w", peer, err)
	}
	return out, in, nil
}

func direction(state tls.ConnectionState, epoch uint64, from, to int) (k Key, err error) {
	context := binary.LittleEndian.AppendUint64(nil, epoch)
	context = binary.LittleEndian.AppendUint32(context, uint32(from))
	context = binary.LittleEndian.AppendUint32(context, uint32(to))
	material, err := state.ExportKeyingMaterial(label, context, len(k))
	copy(k[:], material)
	return k, err
}
