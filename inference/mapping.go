package inference

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// mapping is a file in memory, read-only. Its pages come from the file as they
// are used, and go first when memory is short.
type mapping struct{ data []byte }

func mapFile(f *os.File, nBytes int64) (*mapping, error) {
	data, err := unix.Mmap(int(f.Fd()), 0, int(nBytes), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("mapping %s: %w", f.Name(), err)
	}
	return &mapping{data}, nil
}

// want asks for n bytes from off on ahead of their use. A hint; the file works
// without.
func (m *mapping) want(off, n int64) {
	first := off - off%int64(os.Getpagesize())
	_ = unix.Madvise(m.data[first:off+n], unix.MADV_WILLNEED)
}

func (m *mapping) close() { _ = unix.Munmap(m.data) }
