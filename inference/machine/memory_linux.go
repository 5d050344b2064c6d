package machine

import "golang.org/x/sys/unix"

// MemoryBytes is the memory of this machine, 0 when it does not say.
func MemoryBytes() int64 {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0
	}
	return int64(info.Totalram) * int64(info.Unit)
}
