package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

const (
	mostComebacks  = 3
	comebackWindow = 10 * time.Minute
	deathTakes     = 30 * time.Second // a large process, once its pipe has ended
	backFlag       = "--back"
)

// watchCommand is the watcher. It waits for the end of its standard input, which
// is a pipe from the app: a byte means an orderly end, none a death. Then it
// starts the app again and ends.
func watchCommand(place *folder) *cobra.Command {
	var app int
	cmd := &cobra.Command{
		Use:    "watch",
		Short:  "Start the app again when it dies (the app runs this by itself)",
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := place.open()
			if err != nil {
				return err
			}
			ended := make(chan bool, 1)
			go func() { // ends with the pipe, or with this process
				n, _ := io.ReadFull(cmd.InOrStdin(), make([]byte, 1))
				ended <- n == 1
			}()
			select {
			case inOrder := <-ended:
				if inOrder {
					return nil
				}
			case <-cmd.Context().Done(): // the system goes down
				return nil
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), deathTakes)
			defer cancel()
			if err := waitForDeath(ctx, app); err != nil {
				return err
			}
			exe, err := os.Executable()
			if err != nil {
				return err
			}
			log := comebackLog{filepath.Join(dir, "comeback.log")}
			return log.comeBack(time.Now(), func() (string, error) { return startAgain(runtime.GOOS, exe, args) }, os.Stderr)
		},
	}
	cmd.Flags().IntVar(&app, "app", 0, "the app's process")
	return cmd
}

// startAgain starts the app as nobody's child and returns words on the process.
func startAgain(system, exe string, args []string) (string, error) {
	name, argv := againCommand(system, exe, args)
	cmd := exec.Command(name, argv...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	words := fmt.Sprintf("process %d", cmd.Process.Pid)
	return words, cmd.Process.Release()
}

// againCommand is the command that starts the app again. A bundle is launched by
// macOS itself, which ties menu bar and windows to what it has launched.
func againCommand(system, exe string, args []string) (name string, argv []string) {
	args = append(slices.DeleteFunc(slices.Clone(args), func(a string) bool { return a == backFlag }), backFlag)
	if bundle, _, ok := strings.Cut(exe, ".app/Contents/MacOS/"); ok && system == "darwin" {
		return "/usr/bin/open", append([]string{"-n", bundle + ".app", "--args"}, args...)
	}
	return exe, args
}
