package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// comebackLog is a text file that says when the app died and what was done. Its
// lines are also the count that keeps a fault from becoming a loop.
type comebackLog struct{ path string }

const (
	logLines  = 100      // kept
	maxLog    = 64 << 10 // read
	startedAs = "Daisy died and was started again"
)

// comeBack starts the app unless it came back too often of late. Either way a
// line in the file and on stderr says so.
func (l comebackLog) comeBack(now time.Time, start func() (string, error), stderr io.Writer) error {
	lines := l.read()
	var words string
	var failed error
	if n := countSince(lines, now.Add(-comebackWindow)); n >= mostComebacks {
		words = fmt.Sprintf("Daisy died again after %d starts in %v and is left alone: start it by hand", n, comebackWindow)
	} else if as, err := start(); err != nil {
		words, failed = fmt.Sprintf("Daisy died and could not be started again: %v", err), err
	} else {
		words = startedAs + " as " + as
	}
	line := now.UTC().Format(time.RFC3339) + " " + words
	fmt.Fprintln(stderr, "daisy:", words)
	lines = append(lines, line)
	lines = lines[max(0, len(lines)-logLines):]
	if err := os.WriteFile(l.path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		return fmt.Errorf("noting that the app came back: %w", err)
	}
	return failed
}

// read returns the lines; none when there is no file.
func (l comebackLog) read() []string {
	f, err := os.Open(l.path)
	if err != nil {
		return nil
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxLog))
	if err != nil {
		return nil
	}
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return nil
	}
	return strings.Split(string(data), "\n")
}

// countSince counts the starts after a time.
func countSince(lines []string, since time.Time) (n int) {
	for _, line := range lines {
		at, words, _ := strings.Cut(line, " ")
		t, err := time.Parse(time.RFC3339, at)
		if err == nil && t.After(since) && strings.HasPrefix(words, startedAs) {
			n++
		}
	}
	return n
}
