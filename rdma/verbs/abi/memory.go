package abi

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// page is zeroed memory outside Go's heap for one T, which the library may keep
// pointers to while it is called.
type page[T any] struct {
	v   *T
	mem []byte
}

func newPage[T any]() (page[T], error) {
	size := os.Getpagesize()
	size = (int(unsafe.Sizeof(*new(T))) + size - 1) / size * size
	mem, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return page[T]{}, fmt.Errorf("verbs: map memory for work requests: %w", err)
	}
	return page[T]{v: (*T)(unsafe.Pointer(unsafe.SliceData(mem))), mem: mem}, nil
}

func (p *page[T]) free() {
	if p.mem != nil {
		_ = unix.Munmap(p.mem)
		p.mem, p.v = nil, nil
	}
}

// addr is where p points to, as C sees it; p is outside Go's heap.
func addr[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }

// at reads a T that lies offset bytes into memory of the library.
func at[T any](base uintptr, offset uintptr) T {
	return *(*T)(unsafe.Add(*(*unsafe.Pointer)(unsafe.Pointer(&base)), offset))
}

// text is a C string of the library, of at most 64 bytes, the longest that a
// device's name may be.
func text(base uintptr) string {
	if base == 0 {
		return ""
	}
	var b []byte
	for i := uintptr(0); i < 64; i++ {
		c := at[byte](base, i)
		if c == 0 {
			break
		}
		b = append(b, c)
	}
	return string(b)
}
