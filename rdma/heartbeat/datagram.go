package heartbeat

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"time"
)

const (
	magic        = "DSYh"
	version      = 1
	macOffset    = 56
	macBytes     = 16
	datagramSize = macOffset + macBytes
	maxInterval  = time.Second
)

type kind uint8

const (
	kindBeat    kind = 1
	kindGoodbye kind = 2
)

// A datagram is what one rank says to another; package documentation has its
// bytes.
type datagram struct {
	kind     kind
	interval time.Duration
	epoch    uint64
	from, to uint32
	counter  uint64
	sent     uint64
	echo     uint64
	held     uint64
}

// A mac signs or checks the datagrams of one direction of one pair. It is used
// by one goroutine.
type mac struct {
	hash hash.Hash
	sum  [sha256.Size]byte
}

func newMAC(key Key) *mac { return &mac{hash: hmac.New(sha256.New, key[:])} }

func (m *mac) of(b []byte) []byte {
	m.hash.Reset()
	m.hash.Write(b)
	return m.hash.Sum(m.sum[:0])[:macBytes]
}

// put writes d, signed, into b.
func (d *datagram) put(b *[datagramSize]byte, m *mac) {
	copy(b[:], magic)
	b[4] = version
	b[5] = byte(d.kind)
	binary.LittleEndian.PutUint16(b[6:], uint16(d.interval.Milliseconds()))
	binary.LittleEndian.PutUint64(b[8:], d.epoch)
	binary.LittleEndian.PutUint32(b[16:], d.from)
	binary.LittleEndian.PutUint32(b[20:], d.to)
	binary.LittleEndian.PutUint64(b[24:], d.counter)
	binary.LittleEndian.PutUint64(b[32:], d.sent)
	binary.LittleEndian.PutUint64(b[40:], d.echo)
	binary.LittleEndian.PutUint64(b[48:], d.held)
	copy(b[macOffset:], m.of(b[:macOffset]))
}

// parse reads what may be a datagram; nothing in it is to be believed before
// authentic. It allocates nothing.
func parse(b []byte) (d datagram, ok bool) {
	if len(b) != datagramSize || string(b[:4]) != magic || b[4] != version {
		return datagram{}, false
	}
	d = datagram{
		kind:     kind(b[5]),
		interval: time.Duration(binary.LittleEndian.Uint16(b[6:])) * time.Millisecond,
		epoch:    binary.LittleEndian.Uint64(b[8:]),
		from:     binary.LittleEndian.Uint32(b[16:]),
		to:       binary.LittleEndian.Uint32(b[20:]),
		counter:  binary.LittleEndian.Uint64(b[24:]),
		sent:     binary.LittleEndian.Uint64(b[32:]),
		echo:     binary.LittleEndian.Uint64(b[40:]),
		held:     binary.LittleEndian.Uint64(b[48:]),
	}
	ok = (d.kind == kindBeat || d.kind == kindGoodbye) && d.interval > 0 && d.interval <= maxInterval &&
		d.counter > 0 && d.sent > 0
	return d, ok
}

// authentic says whether the bytes of a datagram bear the key's signature.
func authentic(b []byte, m *mac) bool { return hmac.Equal(b[macOffset:], m.of(b[:macOffset])) }
