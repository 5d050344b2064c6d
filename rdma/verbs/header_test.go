package verbs

import (
	"bytes"
	"testing"

	"daisy/rdma"

	"github.com/stretchr/testify/require"
)

func exampleHeader() header {
	return header{kind: kindData, tag: rdma.Tag{Op: rdma.OpBroadcast, Root: 513, Seq: 0x01020304, Bytes: 1 << 40},
		bytes: 100, left: 1 << 33, seq: 0xfffffffe, freed: [maxLanes]uint16{1, 2, 3, 4, 5, 6, 7, 65535}}
}

func TestHeaderLayout(t *testing.T) {
	slot := make([]byte, 4096)
	h := exampleHeader()
	h.put(slot, 0x1122334455667788, false)
	require.Equal(t, []byte("DSYv\x01\x04\x01\x02\x04\x03\x02\x01\x64\x00\x00\x00"+
		"\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00"+
		"\xfe\xff\xff\xff\x00\x00\x00\x00\x88\x77\x66\x55\x44\x33\x22\x11"+
		"\x01\x00\x02\x00\x03\x00\x04\x00\x05\x00\x06\x00\x07\x00\xff\xff"), slot[:headerBytes])
}

// TestChecksum damages every byte that a checksum covers.
func TestChecksum(t *testing.T) {
	slot := make([]byte, 4096)
	h := exampleHeader()
	for i := range int(h.bytes) {
		slot[headerBytes+i] = byte(i)
	}
	h.put(slot, 7, true)
	good := bytes.Clone(slot)
	var got header
	require.NoError(t, got.parse(slot, 7, true))
	require.Equal(t, h, got)
	for i := range headerBytes + int(h.bytes) {
		copy(slot, good)
		slot[i] ^= 0x10
		require.Error(t, got.parse(slot, 7, true), "byte %d", i)
	}
}

func TestMalformedHeaders(t *testing.T) {
	for name, change := range map[string]func(h *header, slot []byte){
		"magic":               func(_ *header, s []byte) { s[0] = 'X' },
		"kind 0":              func(h *header, _ []byte) { h.kind = 0 },
		"kind 5":              func(h *header, _ []byte) { h.kind = 5 },
		"payload beyond slot": func(h *header, _ []byte) { h.bytes = 4096 - headerBytes + 1 },
		"payload beyond left": func(h *header, _ []byte) { h.left = 99 },
		"huge payload":        func(h *header, _ []byte) { h.bytes, h.left = 1<<32-1, 1<<63 },
		"empty but not last":  func(h *header, _ []byte) { h.bytes = 0 },
		"bye with payload":    func(h *header, _ []byte) { h.kind = kindBye },
		"credit with tag":     func(h *header, _ []byte) { h.kind, h.bytes, h.left = kindCredit, 0, 0 },
		"other epoch":         func(_ *header, s []byte) { s[47] ^= 1 },
	} {
		slot := make([]byte, 4096)
		h := exampleHeader()
		change(&h, make([]byte, 64))
		h.put(slot, 7, false)
		change(&header{}, slot)
		require.Error(t, h.parse(slot, 7, false), name)
	}
}

func FuzzHeader(f *testing.F) {
	slot := make([]byte, 200)
	h := exampleHeader()
	for _, checksum := range []bool{false, true} {
		h.put(slot, 7, checksum)
		f.Add(bytes.Clone(slot), checksum)
	}
	(&header{kind: kindBye, seq: 9}).put(slot, 7, false)
	f.Add(bytes.Clone(slot), false)
	(&header{kind: kindCredit}).put(slot, 7, true)
	f.Add(bytes.Clone(slot), true)
	f.Fuzz(func(t *testing.T, b []byte, checksum bool) {
		if len(b) < headerBytes {
			return // slots are never shorter
		}
		in := bytes.Clone(b)
		var h header
		if h.parse(b, 7, checksum) != nil {
			return
		}
		out := bytes.Clone(in)
		h.put(out, 7, checksum)
		if !checksum {
			copy(out[36:40], in[36:40]) // not looked at
		}
		require.Equal(t, in, out)
	})
}
