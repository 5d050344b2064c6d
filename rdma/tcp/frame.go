package tcp

import (
	"encoding/binary"
	"errors"
	"fmt"

	"daisy/rdma"
)

type kind uint8

const (
	kindData  kind = 1
	kindAbort kind = 2
	kindBye   kind = 3
)

const (
	frameMagic = uint32('D') | 'S'<<8 | 'Y'<<16 | 'f'<<24
	headerSize = 32
	// maxChunk is the longest payload of one frame.
	maxChunk = 1 << 20
)

// A header precedes every payload; see the package documentation.
type header struct {
	kind  kind
	tag   rdma.Tag
	chunk uint32 // length of the payload
	left  uint64 // of the message, this payload included
}

func (h header) put(b *[headerSize]byte) {
	binary.LittleEndian.PutUint32(b[0:], frameMagic)
	b[4] = byte(h.kind)
	b[5] = byte(h.tag.Op)
	binary.LittleEndian.PutUint16(b[6:], h.tag.Root)
	binary.LittleEndian.PutUint32(b[8:], h.tag.Seq)
	binary.LittleEndian.PutUint32(b[12:], h.chunk)
	binary.LittleEndian.PutUint64(b[16:], h.tag.Bytes)
	binary.LittleEndian.PutUint64(b[24:], h.left)
}

// parseHeader accepts exactly what put writes for frames that make sense.
func parseHeader(b *[headerSize]byte) (header, error) {
	if binary.LittleEndian.Uint32(b[0:]) != frameMagic {
		return header{}, errors.New("it sent bytes that are no frame")
	}
	h := header{
		kind: kind(b[4]),
		tag: rdma.Tag{
			Op:    rdma.Op(b[5]),
			Root:  binary.LittleEndian.Uint16(b[6:]),
			Seq:   binary.LittleEndian.Uint32(b[8:]),
			Bytes: binary.LittleEndian.Uint64(b[16:]),
		},
		chunk: binary.LittleEndian.Uint32(b[12:]),
		left:  binary.LittleEndian.Uint64(b[24:]),
	}
	ok := false
	switch h.kind {
	case kindData:
		// One way only to cut a message: what follows a header is then known
		// before it is read.
		ok = uint64(h.chunk) == min(h.left, maxChunk)
	case kindAbort:
		ok = h.chunk <= rdma.MaxAbort && h.tag == rdma.Tag{} && h.left == 0
	case kindBye:
		ok = h == header{kind: kindBye}
	}
	if !ok {
		return header{}, fmt.Errorf("it sent a malformed frame (kind %d, %d of %d bytes)", h.kind, h.chunk, h.left)
	}
	return h, nil
}
