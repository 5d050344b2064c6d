//go:build !headless

package ui

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		os.Exit(child(dir))
	}
	// The library that announces nodes ends its own goroutine a second after
	// its Shutdown has returned; the toolkit starts one before main.
	goleak.VerifyTestMain(m, goleak.IgnoreCurrent(), goleak.IgnoreAnyFunction("github.com/grandcat/zeroconf.(*Server).probe"))
}
