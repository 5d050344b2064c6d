//go:build !linux

package calibrate

import "golang.org/x/sys/unix"

// smallPages is memory of the usual pages. Munmap frees it.
func smallPages(nBytes int) ([]byte, error) {
	return unix.Mmap(-1, 0, nBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
}
