package gguf

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// File is an open model: its metadata, its tensor list, and access to the data.
type File struct {
	version uint32
	meta    map[string]any // by key; see parser.value for the Go types
	keys    []string       // in file order
	tensors []Tensor
	byName  map[string]int
	parts   []part

	gap     int                   // of a Source
	sampled [][][sha256.Size]byte // of a Source: digests of each part's sampled blocks
}

// part is one file.
type part struct {
	path     string
	r        io.ReaderAt
	file     *os.File // nil where the caller owns r
	modified time.Time
	size     int64
	header   int64 // bytes before the tensor data, padding included
}

// Open opens the model at path and checks its header; it blocks on the disk. For a split model path is the first part,
// and all parts must lie in the same folder. The error is one line that starts with the path of the file at fault.
// The caller must Close the file.
func Open(path string) (*File, error) { return open(path, Parse) }

// OpenHeader is Open for files of which only the beginning need be there: metadata and tensor list, as far as
// HeaderSize. Sizes are those of the whole model; reading tensor data that is missing fails.
func OpenHeader(path string) (*File, error) { return open(path, ParseHeader) }

// parse is Parse or ParseHeader.
type parse func(r io.ReaderAt, size int64) (*File, error)

func open(path string, parse parse) (*File, error) {
	f, err := openPart(path, parse)
	if err != nil {
		return nil, err
	}
	if err := f.openOtherParts(path, parse); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// openPart opens one file and parses it, without looking for other parts.
func openPart(path string, parse parse) (*File, error) {
	// A pipe would block for ever and a folder cannot be read: look before opening.
	info, err := os.Stat(path)
	if err != nil {
		return nil, pathError(path, err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file", path)
	}
	r, err := os.Open(path)
	if err != nil {
		return nil, pathError(path, err)
	}
	f, err := parse(r, info.Size())
	if err != nil {
		r.Close()
		return nil, pathError(path, err)
	}
	f.parts[0].path, f.parts[0].file, f.parts[0].modified = path, r, info.ModTime()
	return f, nil
}

// pathError puts path in front of err, on one line, without the operation that os errors name.
func pathError(path string, err error) error {
	if pe, ok := errors.AsType[*os.PathError](err); ok {
		err = pe.Err
	}
	return fmt.Errorf("%s: %w", path, err)
}

// Parse reads and checks the header of the size bytes behind r, which must stay readable while the File is used. It
// does not look for further parts of a split model.
func Parse(r io.ReaderAt, size int64) (*File, error) {
	return newParser(r, size).file()
}

// ParseHeader is Parse for a file of which the first size bytes are there, at least its header.
func ParseHeader(r io.ReaderAt, size int64) (*File, error) {
	p := newParser(r, size)
	p.headerOnly = true
	return p.file()
}

// Close closes the files that Open opened. No other call may be running or follow.
func (f *File) Close() error {
	var errs []error
	for i := range f.parts {
		if r := f.parts[i].file; r != nil {
			f.parts[i].file = nil
			errs = append(errs, r.Close())
		}
	}
	return errors.Join(errs...)
}

// Path returns the path given to Open, or the Source's name; "" after Parse.
func (f *File) Path() string { return f.parts[0].path }

// Version returns the version of the format, 2 or 3.
func (f *File) Version() int { return int(f.version) }

// Size returns the bytes of the model on disk, all parts together.
func (f *File) Size() int64 {
	var n int64
	for _, p := range f.parts {
		n += p.size
	}
	return n
}

// HeaderSize returns the bytes before the tensor data (of the first part, when split).
func (f *File) HeaderSize() int64 { return f.parts[0].header }

// Part tells about one file of the model.
type Part struct {
	Path       string
	Size       int64
	HeaderSize int64 // bytes before the tensor data
}

// Parts lists the files of the model in order; one for a model that is not split.
func (f *File) Parts() []Part {
	out := make([]Part, len(f.parts))
	for i, p := range f.parts {
		out[i] = Part{Path: p.path, Size: p.size, HeaderSize: p.header}
	}
	return out
}

// ReadAt reads at an absolute offset of the first part, as io.ReaderAt. Readers of tensor data use ReadTensorAt, which
// also works for split models.
func (f *File) ReadAt(p []byte, off int64) (int, error) { return f.parts[0].r.ReadAt(p, off) }

// printable shortens and cleans text from a file for an error message.
func printable(s string) string {
	if len(s) > 64 {
		s = s[:64] + "…"
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
