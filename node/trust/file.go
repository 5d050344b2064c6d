package trust

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"daisy/node/identity"
)

const (
	fileVersion = 1
	maxFile     = 512 << 10 // bytes
)

// document is the file's content.
type document struct {
	Version int     `json:"version"`
	Nodes   []Entry `json:"nodes"`
}

func encode(entries map[identity.ID]Entry) ([]byte, error) {
	d := document{Version: fileVersion, Nodes: make([]Entry, 0, len(entries))}
	for _, e := range entries {
		d.Nodes = append(d.Nodes, e)
	}
	sortEntries(d.Nodes)
	data, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return nil, err
	}
	return append(data, '\n'), nil
}

// decode reads a file's bytes strictly: trust is not guessed from what is left
// of a damaged file.
func decode(data []byte) (map[identity.ID]Entry, error) {
	if len(data) > maxFile {
		return nil, fmt.Errorf("longer than %d bytes", maxFile)
	}
	var d document
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, err
	}
	if d.Version != fileVersion {
		return nil, fmt.Errorf("of version %d, where this Daisy knows version %d", d.Version, fileVersion)
	}
	if len(d.Nodes) > maxEntries {
		return nil, fmt.Errorf("it lists %d nodes", len(d.Nodes))
	}
	entries := make(map[identity.ID]Entry, len(d.Nodes))
	for _, e := range d.Nodes {
		if err := e.check(); err != nil {
			return nil, err
		}
		if _, twice := entries[e.ID]; twice {
			return nil, fmt.Errorf("node %s is listed twice", e.ID.Short())
		}
		entries[e.ID] = e
	}
	return entries, nil
}

func read(path string) (map[identity.ID]Entry, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return map[identity.ID]Entry{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("opening the list of paired nodes: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("reading the list of paired nodes: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("the list of paired nodes %s is not a regular file", path)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("the list of paired nodes %s can be read or changed by others (mode %04o); "+
			"if nobody did, run: chmod 600 %s; otherwise move it away and pair anew", path, info.Mode().Perm(), path)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("reading the list of paired nodes: %w", err)
	}
	entries, err := decode(data)
	if err != nil {
		return nil, fmt.Errorf("the list of paired nodes %s is damaged (%w); restore it from a backup, "+
			"or move it away and pair anew", path, err)
	}
	return entries, nil
}

// replace puts data at path, whole or not at all.
func replace(path string, data []byte) (err error) {
	dir := filepath.Dir(path)
	// os.CreateTemp makes the file with mode 0600.
	tmp, err := os.CreateTemp(dir, File+".new-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(tmp.Name())
		}
	}()
	_, err = tmp.Write(data)
	if err == nil {
		err = tmp.Sync()
	}
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return err
	}
	// The name must survive a power cut, too.
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
