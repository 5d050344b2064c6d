//go:build !linux

package main

// residentBytes is known on Linux only; elsewhere 0 means unknown.
func residentBytes() (anonymous, file int64) { return 0, 0 }
