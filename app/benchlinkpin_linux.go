package main

import (
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// startPinned starts a process on one of the processors this one may use: a
// child inherits those of the thread that makes it.
func startPinned(cmd *exec.Cmd, rank int) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return err
	}
	skip := rank % max(before.Count(), 1)
	for i := range 1024 {
		if before.IsSet(i) {
			if skip == 0 {
				one.Set(i)
				break
			}
			skip--
		}
	}
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return err
	}
	defer unix.SchedSetaffinity(0, &before)
	return cmd.Start()
}
