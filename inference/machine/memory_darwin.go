package machine

import "golang.org/x/sys/unix"

// MemoryBytes is the memory of this machine, 0 when it does not say.
func MemoryBytes() int64 {
	n, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return 0
	}
	return int64(n)
}
