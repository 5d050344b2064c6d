package gguf

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
)

// Source is a model that is read from elsewhere than this machine's disk, for example from a peer. Its readers are
// used by several goroutines at once, must fill what they are asked for or fail, and stay the caller's: nobody closes
// them. A read that hangs holds up the loading, so they need a time limit of their own.
type Source struct {
	Name  string       // for messages
	Parts []SourcePart // one, or those of a split model in order
	// Gap is how many bytes that nobody needs are read along rather than begin another read; 0 means DefaultGap. It
	// should be about what the way to the source carries in the time that a read takes to begin.
	Gap int
}

// SourcePart is one file of a Source.
type SourcePart struct {
	Reader io.ReaderAt
	Size   int64
}

// DefaultGap is Source.Gap where that is 0.
const DefaultGap = 4 << 10

// OpenSource is Open for a model that is elsewhere. It reads the header and the blocks that Fingerprint samples, and
// blocks as long as the source does. The error is one line that starts with the source's name.
func OpenSource(s Source) (*File, error) {
	if len(s.Parts) == 0 || len(s.Parts) > MaxParts {
		return nil, fmt.Errorf("%s: a source of %d parts", s.Name, len(s.Parts))
	}
	names := []string{s.Name}
	if len(s.Parts) > 1 {
		names = nil
		for i := range s.Parts {
			names = append(names, fmt.Sprintf("%s (part %d)", s.Name, i+1))
		}
	}
	openOne := func(i int) (*File, error) {
		f, err := Parse(s.Parts[i].Reader, s.Parts[i].Size)
		if err != nil {
			return nil, pathError(names[i], err)
		}
		f.parts[0].path = names[i]
		return f, nil
	}
	f, err := openOne(0)
	if err != nil {
		return nil, err
	}
	if count, _ := f.Uint(keySplitCount); max(1, count) != uint64(len(names)) {
		return nil, fmt.Errorf("%s: says it has %d parts, the source has %d", s.Name, max(1, count), len(names))
	}
	if err := f.addParts(names, openOne); err != nil {
		return nil, err
	}
	f.gap = s.Gap
	if f.gap <= 0 {
		f.gap = DefaultGap
	}
	f.sampled = make([][][sha256.Size]byte, len(f.parts))
	for i, p := range f.parts {
		if f.sampled[i], err = p.sample(); err != nil {
			return nil, pathError(p.path, err)
		}
	}
	return f, nil
}

// Gap is how many needless bytes are cheaper to read than to leave out; no limit for local files, which come by pages.
func (f *File) Gap() int64 {
	if f.sampled == nil {
		return 1 << 62
	}
	return int64(f.gap)
}

// Local returns the open file of part i, which stays f's; nil when it comes from a Source or Parse.
func (f *File) Local(i int) *os.File { return f.parts[i].file }

// CheckLocal returns an error when the file that holds part i was written to since Open. It is cheap. For a part that
// is not local it does nothing.
func (f *File) CheckLocal(i int) error {
	p := f.parts[i]
	if p.file == nil {
		return nil
	}
	info, err := p.file.Stat()
	if err != nil {
		return pathError(p.path, err)
	}
	if info.Size() != p.size || !info.ModTime().Equal(p.modified) {
		return fmt.Errorf("%s: %w", p.path, errChanged)
	}
	return nil
}

// CheckSource returns an error when a block that OpenSource sampled reads otherwise now; it names the tensor. For other
// files it does nothing. It blocks on the source.
func (f *File) CheckSource() error {
	for i := range f.sampled {
		p := f.parts[i]
		now, err := p.sample()
		if err != nil {
			return pathError(p.path, err)
		}
		for b, sum := range now {
			if sum != f.sampled[i][b] {
				return fmt.Errorf("%s: tensor %q: %w", p.path, f.tensorAt(i, p.samplesAt()[b]), errChanged)
			}
		}
	}
	return nil
}

var errChanged = fmt.Errorf("changed while it was loaded")

// tensorAt names the last tensor of a part that begins before the end of the sampled block at off.
func (f *File) tensorAt(part int, off int64) (name string) {
	best := int64(-1)
	for _, t := range f.tensors {
		if t.Part == part && t.Offset < off+fingerprintBlock && t.Offset > best {
			name, best = t.Name, t.Offset
		}
	}
	return name
}

// sample digests the blocks of a part that Fingerprint reads.
func (p part) sample() (sums [][sha256.Size]byte, err error) {
	var block [fingerprintBlock]byte
	for _, off := range p.samplesAt() {
		n := min(fingerprintBlock, p.size-off)
		if got, err := p.r.ReadAt(block[:n], off); int64(got) < n {
			return nil, fmt.Errorf("sampling at byte %d: %w", off, short(err))
		}
		sums = append(sums, sha256.Sum256(block[:n]))
	}
	return sums, nil
}

// short is the error of a read that brought too little.
func short(err error) error {
	if err == nil || err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
