//go:build !linux

package main

import (
	"errors"
	"os/exec"
)

func startPinned(*exec.Cmd, int) error {
	return errors.New("--pin: this system cannot bind a process to a core")
}
