package gguf

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
)

const (
	fingerprintBlocks = 64
	fingerprintBlock  = 4 << 10
)

// Fingerprint tells whether two machines hold the same model: the hex SHA-256 over each part's header, its size, and
// 64 evenly spaced blocks of 4 KiB of its data. It reads a few hundred KiB beside the header, however large the file,
// so it notices another quantisation, fine-tune or a cut file, but not a single flipped byte. It blocks on the disk.
func (f *File) Fingerprint() (string, error) {
	h := sha256.New()
	for _, p := range f.parts {
		if err := p.fingerprint(h); err != nil {
			return "", pathError(p.path, fmt.Errorf("fingerprint: %w", err))
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func (p part) fingerprint(w io.Writer) error {
	var size [8]byte
	binary.LittleEndian.PutUint64(size[:], uint64(p.size))
	if _, err := w.Write(size[:]); err != nil {
		return err
	}
	if _, err := io.Copy(w, io.NewSectionReader(p.r, 0, p.header)); err != nil {
		return err
	}
	for _, off := range p.samplesAt() {
		if _, err := io.Copy(w, io.NewSectionReader(p.r, off, min(fingerprintBlock, p.size-off))); err != nil {
			return err
		}
	}
	return nil
}

// samplesAt are the offsets of the blocks that speak for the data: all of it, where there is little.
func (p part) samplesAt() (offsets []int64) {
	data := p.size - p.header
	if data <= fingerprintBlocks*fingerprintBlock {
		for off := p.header; off < p.size; off += fingerprintBlock {
			offsets = append(offsets, off)
		}
		return offsets
	}
	last := data - fingerprintBlock
	for i := range int64(fingerprintBlocks) {
		// The first block starts the data, the last one ends it; split the product to stay clear of overflow.
		offsets = append(offsets, p.header+last/(fingerprintBlocks-1)*i+last%(fingerprintBlocks-1)*i/(fingerprintBlocks-1))
	}
	return offsets
}
