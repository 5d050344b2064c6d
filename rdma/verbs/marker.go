package verbs

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// A marker is a file that exists, and is locked, while this process uses RDMA
// devices. A fault inside the provider kills the process without a word; then
// the lock is gone but the file is there, and the next start lets those devices
// rest. See docs/adr/0002-faults-in-the-rdma-provider.md.
type marker struct{ file *os.File }

const (
	markerPattern = "rdma-in-use-*.json"
	// restFor is how long devices rest after the process that used them died:
	// long enough that a cable is back in place, short enough to be forgotten.
	restFor = 10 * time.Minute
	// touchEvery is how exactly a marker tells when its process died.
	touchEvery = 10 * time.Second
	// maxMarker bounds what is read of a file that anybody may have written.
	maxMarker = 64 << 10
)

type markerBody struct {
	Devices []string `json:"devices"`
}

// mark writes a marker. dir is created if need be.
func mark(dir string, devices []string) (*marker, error) {
	if dir == "" {
		return nil, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("marking the use of RDMA: %w", err)
	}
	f, err := os.CreateTemp(dir, markerPattern)
	if err != nil {
		return nil, fmt.Errorf("marking the use of RDMA: %w", err)
	}
	m := &marker{f}
	body, err := json.Marshal(markerBody{devices})
	if err == nil {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX) // a reader holds it for a moment at most
	}
	if err == nil {
		_, err = f.Write(body)
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		m.remove()
		return nil, fmt.Errorf("marking the use of RDMA: %w", err)
	}
	return m, nil
}

// touch tells that the process still lives.
func (m *marker) touch() {
	if m != nil {
		now := time.Now()
		_ = os.Chtimes(m.file.Name(), now, now) // a marker that looks older rests its devices shorter
	}
}

// remove takes the marker back: the devices were left in order.
func (m *marker) remove() {
	if m != nil {
		_ = os.Remove(m.file.Name()) // one that stays rests the devices without need
		_ = m.file.Close()
	}
}

// resting reads the markers of processes that died and returns until when each
// device is to rest. Markers that are too old are deleted.
func resting(dir string, now time.Time) map[string]time.Time {
	rest := map[string]time.Time{}
	if dir == "" {
		return rest
	}
	names, _ := filepath.Glob(filepath.Join(dir, markerPattern)) // the pattern is good
	for _, name := range names {
		body, died, ok := readMarker(name)
		if !ok {
			continue
		}
		until := died.Add(restFor)
		if !now.Before(until) {
			_ = os.Remove(name) // else it is tried again next time
			continue
		}
		for _, d := range body.Devices {
			if rest[d].Before(until) {
				rest[d] = until
			}
		}
	}
	return rest
}

// readMarker reads the marker of a process that is dead.
func readMarker(name string) (body markerBody, died time.Time, ok bool) {
	f, err := os.Open(name)
	if err != nil {
		return body, died, false
	}
	defer f.Close()
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return body, died, false // it lives
	}
	info, err := f.Stat()
	if err != nil {
		return body, died, false
	}
	b, err := io.ReadAll(io.LimitReader(f, maxMarker))
	if err != nil || json.Unmarshal(b, &body) != nil {
		body = markerBody{} // cut off in mid-write: it only ages
	}
	return body, info.ModTime(), true
}
