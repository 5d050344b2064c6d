//go:build unix

package heartbeat

import (
	"os"
	"syscall"
)

// hurts are the ways in which a rank's process ends.
var hurts = []struct {
	name string
	hurt func(*os.Process) error
}{
	{"SIGKILL", func(p *os.Process) error { return p.Signal(syscall.SIGKILL) }},
	{"SIGSTOP", func(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }},
}
