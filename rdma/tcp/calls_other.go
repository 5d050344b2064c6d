//go:build !linux

package tcp

import "golang.org/x/sys/unix"

func readNow(fd uintptr, first, second []byte) (int, error) {
	if len(second) == 0 {
		return unix.Read(int(fd), first)
	}
	return unix.Readv(int(fd), [][]byte{first, second})
}

func writeNow(fd uintptr, first, second []byte) (int, error) {
	if len(second) == 0 {
		return unix.Write(int(fd), first)
	}
	return unix.Writev(int(fd), [][]byte{first, second})
}
