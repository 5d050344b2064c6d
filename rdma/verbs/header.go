package verbs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"daisy/rdma"
)

type frameKind uint8

const (
	kindData   frameKind = 1
	kindCredit frameKind = 2 // nothing but the counters in every header
	kindBye    frameKind = 3 // the last frame of a direction
	kindSeen   frameKind = 4 // answers a bye
)

const (
	slotMagic   = uint32('D') | 'S'<<8 | 'Y'<<16 | 'v'<<24
	headerBytes = 64
	// maxRails is how many cables one pair of ranks uses at most; the counters
	// of their lanes fill the rest of the header.
	maxRails = 4
	maxLanes = maxRails * nClasses
)

// A header is the beginning of every slot; see the package documentation.
type header struct {
	kind  frameKind
	tag   rdma.Tag
	bytes uint32 // length of the payload
	left  uint64 // of the message, this payload included
	seq   uint32
	freed [maxLanes]uint16 // slots of the receiver's that the sender has taken
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// put writes the header to the beginning of a slot that holds the payload.
func (h *header) put(slot []byte, epoch uint64, checksum bool) {
	b := slot[:headerBytes:headerBytes]
	binary.LittleEndian.PutUint32(b[0:], slotMagic)
	b[4] = byte(h.kind)
	b[5] = byte(h.tag.Op)
	binary.LittleEndian.PutUint16(b[6:], h.tag.Root)
	binary.LittleEndian.PutUint32(b[8:], h.tag.Seq)
	binary.LittleEndian.PutUint32(b[12:], h.bytes)
	binary.LittleEndian.PutUint64(b[16:], h.tag.Bytes)
	binary.LittleEndian.PutUint64(b[24:], h.left)
	binary.LittleEndian.PutUint32(b[32:], h.seq)
	binary.LittleEndian.PutUint32(b[36:], 0)
	binary.LittleEndian.PutUint64(b[40:], epoch)
	for i, n := range h.freed {
		binary.LittleEndian.PutUint16(b[48+2*i:], n)
	}
	if checksum {
		binary.LittleEndian.PutUint32(b[36:], crc32.Checksum(slot[:headerBytes+int(h.bytes)], castagnoli))
	}
}

var (
	errNoSlot   = errors.New("it sent bytes that are no slot of this protocol")
	errChecksum = errors.New("a slot arrived damaged: its checksum is wrong")
)

// parse reads what put wrote. A slot that put does not write is an error. It
// writes to the slot: nobody else reads it.
func (h *header) parse(slot []byte, epoch uint64, checksum bool) error {
	b := slot[:headerBytes:headerBytes]
	if binary.LittleEndian.Uint32(b[0:]) != slotMagic {
		return errNoSlot
	}
	h.kind = frameKind(b[4])
	h.tag = rdma.Tag{
		Op:    rdma.Op(b[5]),
		Root:  binary.LittleEndian.Uint16(b[6:]),
		Seq:   binary.LittleEndian.Uint32(b[8:]),
		Bytes: binary.LittleEndian.Uint64(b[16:]),
	}
	h.bytes = binary.LittleEndian.Uint32(b[12:])
	h.left = binary.LittleEndian.Uint64(b[24:])
	h.seq = binary.LittleEndian.Uint32(b[32:])
	for i := range h.freed {
		h.freed[i] = binary.LittleEndian.Uint16(b[48+2*i:])
	}
	if e := binary.LittleEndian.Uint64(b[40:]); e != epoch {
		return fmt.Errorf("it sent a slot of epoch %d, this group is of epoch %d", e, epoch)
	}
	ok := false
	switch h.kind {
	case kindData:
		// Only an empty message has an empty payload.
		ok = uint64(h.bytes) <= h.left && (h.bytes > 0 || h.left == 0)
	case kindCredit, kindBye, kindSeen:
		ok = h.bytes == 0 && h.left == 0 && h.tag == rdma.Tag{}
	}
	if !ok || int(h.bytes) > len(slot)-headerBytes {
		return fmt.Errorf("it sent a malformed slot (kind %d, %d of %d bytes)", h.kind, h.bytes, h.left)
	}
	if checksum {
		sum := binary.LittleEndian.Uint32(b[36:])
		binary.LittleEndian.PutUint32(b[36:], 0)
		if sum != crc32.Checksum(slot[:headerBytes+int(h.bytes)], castagnoli) {
			return errChecksum
		}
	}
	return nil
}
