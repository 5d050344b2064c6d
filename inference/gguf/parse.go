package gguf

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// parser reads a header front to back. The first failure is kept in err and makes every later read return zero.
type parser struct {
	src    io.ReaderAt
	r      *bufio.Reader
	size   int64 // of the file
	pos    int64
	budget int64 // memory that may still be taken
	err    error
	buf    [8]byte

	scratch [4 << 10]byte

	headerOnly bool // tensor data may be missing
}

func newParser(src io.ReaderAt, size int64) *parser {
	return &parser{
		src: src, size: size, budget: MaxHeaderMemory,
		r: bufio.NewReaderSize(io.NewSectionReader(src, 0, max(size, 0)), 256<<10),
	}
}

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}

// take reserves n bytes of the file and memory for them before anything is allocated.
func (p *parser) take(fileBytes, memory int64) bool {
	if p.err != nil {
		return false
	}
	if fileBytes > p.size-p.pos {
		p.fail("truncated: %d bytes needed at byte %d, the file has %d", fileBytes, p.pos, p.size)
		return false
	}
	if memory > p.budget {
		p.fail("header needs more than %d MiB of memory", MaxHeaderMemory>>20)
		return false
	}
	p.budget -= memory
	return true
}

// read fills b.
func (p *parser) read(b []byte) bool {
	if !p.take(int64(len(b)), 0) {
		return false
	}
	n, err := io.ReadFull(p.r, b)
	p.pos += int64(n)
	if err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			p.fail("truncated at byte %d", p.pos)
		} else {
			p.fail("reading the header: %w", err)
		}
		return false
	}
	return true
}

func (p *parser) u8() uint8 {
	if !p.read(p.buf[:1]) {
		return 0
	}
	return p.buf[0]
}

func (p *parser) u16() uint16 {
	if !p.read(p.buf[:2]) {
		return 0
	}
	return binary.LittleEndian.Uint16(p.buf[:2])
}

func (p *parser) u32() uint32 {
	if !p.read(p.buf[:4]) {
		return 0
	}
	return binary.LittleEndian.Uint32(p.buf[:4])
}

func (p *parser) u64() uint64 {
	if !p.read(p.buf[:8]) {
		return 0
	}
	return binary.LittleEndian.Uint64(p.buf[:8])
}

// str reads a string of at most limit bytes; what names it in errors.
func (p *parser) str(what string, limit uint64) string {
	n := p.u64()
	if p.err != nil {
		return ""
	}
	if n > limit {
		p.fail("%s claims a length of %d bytes, at most %d are allowed", what, n, limit)
		return ""
	}
	if !p.take(int64(n), int64(n)) {
		return ""
	}
	var s strings.Builder // takes the memory once; a []byte would be copied
	s.Grow(int(n))
	for left := int(n); left > 0; {
		b := p.scratch[:min(left, len(p.scratch))]
		if !p.read(b) {
			return ""
		}
		s.Write(b)
		left -= len(b)
	}
	return s.String()
}

// file reads the whole header.
func (p *parser) file() (*File, error) {
	f := &File{}
	var magic [4]byte
	if p.size < 4 || !p.read(magic[:]) || string(magic[:]) != "GGUF" {
		if p.err != nil && p.size >= 4 {
			return nil, p.err
		}
		return nil, errors.New("not a GGUF file")
	}
	f.version = p.u32()
	switch {
	case p.err != nil:
		return nil, p.err
	case f.version == 2 || f.version == 3:
	case f.version != 0 && f.version&0xFFFF == 0:
		return nil, errors.New("big-endian GGUF is not supported")
	default:
		return nil, fmt.Errorf("GGUF version %d is not supported, only 2 and 3 are", f.version)
	}
	nTensors, nKeys := p.u64(), p.u64()
	if p.err == nil && nTensors > MaxTensors {
		p.fail("claims %d tensors, at most %d are allowed", nTensors, MaxTensors)
	}
	if p.err == nil && nKeys > MaxKeys {
		p.fail("claims %d metadata keys, at most %d are allowed", nKeys, MaxKeys)
	}
	p.metadata(f, nKeys)
	p.tensorList(f, nTensors)
	p.data(f)
	if p.err != nil {
		return nil, p.err
	}
	return f, nil
}

// tensorList reads the tensor descriptions; offsets stay relative to the data until data fixes them.
func (p *parser) tensorList(f *File, n uint64) {
	// A description takes at least 32 bytes of the file, and about 200 of memory with its place in the index.
	if !p.take(int64(n)*32, int64(n)*200) {
		return
	}
	f.tensors = make([]Tensor, 0, n)
	f.byName = make(map[string]int, n)
	for range n {
		t := Tensor{Name: p.str("a tensor name", MaxNameBytes)}
		dims := p.u32()
		if p.err == nil && (dims < 1 || dims > MaxDims) {
			p.fail("tensor %q has %d dimensions, 1 to %d are possible", printable(t.Name), dims, MaxDims)
		}
		if p.err != nil {
			return
		}
		t.Shape = make([]int64, dims)
		for i := range t.Shape {
			d := p.u64()
			if d > math.MaxInt64 {
				p.fail("tensor %q has a dimension of %d", printable(t.Name), d)
			}
			t.Shape[i] = int64(d)
		}
		t.Type = Type(p.u32())
		offset := p.u64()
		if p.err == nil && offset > math.MaxInt64/2 {
			p.fail("tensor %q has an absurd offset %d", printable(t.Name), offset)
		}
		t.Offset = int64(offset)
		if p.err == nil && t.Name == "" {
			p.fail("a tensor has no name")
		}
		if _, dup := f.byName[t.Name]; dup {
			p.fail("tensor %q is listed twice", printable(t.Name))
		}
		if p.err != nil {
			return
		}
		f.byName[t.Name] = len(f.tensors)
		f.tensors = append(f.tensors, t)
	}
}

// maxSpan bounds a file of which only the header is there: a header alone must not claim sizes whose sums overflow.
const maxSpan = 1 << 50

// data works out where the tensor data starts, and checks that every tensor lies inside the file, by itself. For a header
// alone, it works out the size that the file would have.
func (p *parser) data(f *File) {
	if p.err != nil {
		return
	}
	align := int64(DefaultAlignment)
	if v, present := f.meta["general.alignment"]; present {
		a, ok := f.Uint("general.alignment")
		if !ok || a == 0 || a > MaxAlignment || a&(a-1) != 0 {
			p.fail("general.alignment is %v, not a power of two up to %d", printable(fmt.Sprint(v)), MaxAlignment)
			return
		}
		align = int64(a)
	}
	start := (p.pos + align - 1) / align * align
	f.parts = []part{{r: p.src, size: p.size, header: min(start, p.size)}}

	order := make([]int, len(f.tensors))
	for i := range f.tensors {
		t := &f.tensors[i]
		order[i] = i
		n, err := t.check()
		if err != nil {
			p.fail("%w", err)
			return
		}
		if t.Offset%align != 0 {
			p.fail("tensor %q starts at %d, not a multiple of the alignment %d", printable(t.Name), t.Offset, align)
			return
		}
		t.Offset += start
		if p.headerOnly {
			if t.Offset > maxSpan || n > maxSpan-t.Offset {
				p.fail("tensor %q of %d bytes at byte %d: a file cannot be as large", printable(t.Name), n, t.Offset)
				return
			}
			f.parts[0].size = max(f.parts[0].size, t.Offset+n)
		} else if t.Offset > p.size || n > p.size-t.Offset {
			p.fail("truncated: tensor %q needs %d bytes at byte %d, the file has %d", printable(t.Name), n, t.Offset, p.size)
			return
		}
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(f.tensors[a].Offset, f.tensors[b].Offset) })
	for i := 1; i < len(order); i++ {
		a, b := f.tensors[order[i-1]], f.tensors[order[i]]
		if a.Offset+a.Bytes() > b.Offset {
			p.fail("tensors %q and %q overlap", printable(a.Name), printable(b.Name))
			return
		}
	}
}
