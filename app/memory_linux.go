package main

import (
	"bufio"
	"fmt"
	"os"
)

// residentBytes is this process's memory: anonymous (its own) and file-backed
// (mapped weights, which the system may drop and read again).
func residentBytes() (anonymous, file int64) {
	f, err := os.Open("/proc/self/status")
	if err != nil {
		return 0, 0
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		var kB int64
		if n, _ := fmt.Sscanf(s.Text(), "RssAnon: %d kB", &kB); n == 1 {
			anonymous = kB << 10
		}
		if n, _ := fmt.Sscanf(s.Text(), "RssFile: %d kB", &kB); n == 1 {
			file = kB << 10
		}
	}
	return anonymous, file
}
