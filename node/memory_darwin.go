package node

import "golang.org/x/sys/unix"

// memoryBytes is the memory of this machine, 0 when it does not say.
func memoryBytes() int64 {
	n, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return 0
	}
	return int64(n)
}
