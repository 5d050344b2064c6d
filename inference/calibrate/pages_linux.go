package calibrate

import "golang.org/x/sys/unix"

// smallPages is memory of pages as small as a mapped file's. Munmap frees it.
func smallPages(nBytes int) ([]byte, error) {
	p, err := unix.Mmap(-1, 0, nBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err == nil {
		_ = unix.Madvise(p, unix.MADV_NOHUGEPAGE) // a kernel without huge pages refuses
	}
	return p, err
}
