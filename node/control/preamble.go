package control

import (
	"encoding/binary"
	"errors"
)

// ALPN names.
const (
	controlProtocol = "h2"
	dataProtocol    = "daisy-data/1"
)

const (
	preambleMagic = "DAISYdat"
	preambleBytes = 24
)

// The answer to a preamble.
const (
	dataAccepted byte = 1
	dataRefused  byte = 0
)

// Preamble opens a data connection. On the wire, big-endian:
//
//	 0  8 bytes  "DAISYdat"
//	 8  uint64   epoch
//	16  uint32   rank of the dialler
//	20  uint32   rank of the other side
type Preamble struct {
	Epoch    uint64
	From, To uint32
}

func (p Preamble) append(b []byte) []byte {
	b = append(b, preambleMagic...)
	b = binary.BigEndian.AppendUint64(b, p.Epoch)
	b = binary.BigEndian.AppendUint32(b, p.From)
	return binary.BigEndian.AppendUint32(b, p.To)
}

func parsePreamble(b [preambleBytes]byte) (Preamble, error) {
	if string(b[:8]) != preambleMagic {
		return Preamble{}, errors.New("no preamble of a data connection")
	}
	return Preamble{
		Epoch: binary.BigEndian.Uint64(b[8:]),
		From:  binary.BigEndian.Uint32(b[16:]),
		To:    binary.BigEndian.Uint32(b[20:]),
	}, nil
}
