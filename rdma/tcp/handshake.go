package tcp

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
)

const (
	version    = 1
	helloMagic = "DAISYtcp"
	helloSize  = 32
)

// A hello says who is at one end of a connection and whom it expects at the
// other.
type hello struct {
	version   uint32
	from, to  uint32
	worldSize uint32
	epoch     uint64
}

func (h hello) append(b []byte) []byte {
	b = append(b, helloMagic...)
	for _, v := range []uint32{h.version, h.from, h.to, h.worldSize} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return binary.LittleEndian.AppendUint64(b, h.epoch)
}

func parseHello(b *[helloSize]byte) (hello, error) {
	if string(b[:8]) != helloMagic {
		return hello{}, fmt.Errorf("the other end does not speak this protocol")
	}
	return hello{
		version:   binary.LittleEndian.Uint32(b[8:]),
		from:      binary.LittleEndian.Uint32(b[12:]),
		to:        binary.LittleEndian.Uint32(b[16:]),
		worldSize: binary.LittleEndian.Uint32(b[20:]),
		epoch:     binary.LittleEndian.Uint64(b[24:]),
	}, nil
}

// check compares the other end's hello with what ours makes us expect.
func (h hello) check(theirs hello) error {
	switch {
	case theirs.version != h.version:
		return fmt.Errorf("it speaks version %d of the protocol, this rank version %d", theirs.version, h.version)
	case theirs.epoch != h.epoch:
		return fmt.Errorf("it is in epoch %d, this rank in epoch %d", theirs.epoch, h.epoch)
	case theirs.worldSize != h.worldSize:
		return fmt.Errorf("its group has %d ranks, this one %d", theirs.worldSize, h.worldSize)
	case theirs.from != h.to:
		return fmt.Errorf("it is rank %d", theirs.from)
	case theirs.to != h.from:
		return fmt.Errorf("it takes this rank %d for rank %d", h.from, theirs.to)
	}
	return nil
}

// shakeHands sends ours and checks theirs. The connection has a deadline.
func shakeHands(c net.Conn, ours hello) error {
	if _, err := c.Write(ours.append(nil)); err != nil {
		return err
	}
	var b [helloSize]byte
	if _, err := io.ReadFull(c, b[:]); err != nil {
		return err
	}
	theirs, err := parseHello(&b)
	if err != nil {
		return err
	}
	return ours.check(theirs)
}
