package tcp

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The system calls on sockets that do not block. They are made without telling
// Go's scheduler, which would else take a call that copies for longer than 20 µs
// for one that blocks, and pass the processor on to another thread meanwhile.

func readNow(fd uintptr, first, second []byte) (int, error) {
	return vectored(syscall.SYS_READV, fd, first, second)
}

func writeNow(fd uintptr, first, second []byte) (int, error) {
	return vectored(syscall.SYS_WRITEV, fd, first, second)
}

func vectored(call, fd uintptr, first, second []byte) (int, error) {
	v := [2]unix.Iovec{{Base: unsafe.SliceData(first)}, {Base: unsafe.SliceData(second)}}
	v[0].SetLen(len(first))
	v[1].SetLen(len(second))
	n, _, errno := syscall.RawSyscall(call, fd, uintptr(unsafe.Pointer(&v)), uintptr(len(v)))
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}
