package inference

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// mapping is a file in memory, read-only. Its pages come from the file as they
// are used, and go first when memory is short.
type mapping struct{ data []byte }

func mapFile(path string) (*mapping, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // the mapping stays
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	data, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("mapping %s: %w", path, err)
	}
	_ = unix.Madvise(data, unix.MADV_WILLNEED) // a hint; the file works without
	return &mapping{data}, nil
}

func (m *mapping) close() { _ = unix.Munmap(m.data) }
