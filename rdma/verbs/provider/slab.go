//go:build darwin || linux

package provider

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// boundary is what no registered memory may cross: Apple's provider encodes the
// low 32 bits of addresses, and what lies beyond would be received 4 GiB too
// low.
const boundary = 4 << 30

// NewSlab maps zeroed memory for RegMR: outside Go's heap, page-aligned and
// nowhere across a 4 GiB boundary. Its length is nBytes rounded up to whole
// pages, at most MaxSlabBytes. The caller frees it with FreeSlab after Dereg.
func NewSlab(nBytes int) ([]byte, error) {
	if nBytes <= 0 || nBytes > MaxSlabBytes {
		return nil, fmt.Errorf("verbs: a slab of %d bytes: must be 1 to %d", nBytes, MaxSlabBytes)
	}
	page := os.Getpagesize()
	nBytes = (nBytes + page - 1) / page * page
	var misfits [][]byte // held, so that the kernel gives other places
	defer func() {
		for _, m := range misfits {
			_ = unix.Munmap(m)
		}
	}()
	for range 8 {
		mem, err := unix.Mmap(-1, 0, nBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		if err != nil {
			return nil, fmt.Errorf("verbs: map a slab of %d bytes: %w", nBytes, err)
		}
		if !CrossesBoundary(uintptr(unsafe.Pointer(unsafe.SliceData(mem))), nBytes) {
			return mem, nil
		}
		misfits = append(misfits, mem)
	}
	return nil, fmt.Errorf("verbs: no place for a slab of %d bytes that crosses no 4 GiB boundary", nBytes)
}

// FreeSlab unmaps what NewSlab mapped. Nobody may use it any more.
func FreeSlab(mem []byte) error {
	if err := unix.Munmap(mem); err != nil {
		return fmt.Errorf("verbs: unmap a slab: %w", err)
	}
	return nil
}

// CrossesBoundary tells memory that must not be registered.
func CrossesBoundary(addr uintptr, nBytes int) bool {
	return nBytes > 0 && addr/boundary != (addr+uintptr(nBytes)-1)/boundary
}
