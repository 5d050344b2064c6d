// Package models lists the model files of this machine: GGUF files in some
// folders and single ones.
//
// Callers are node, which finds the file an invitation names, and app, which
// shows the list. A Library reads headers and a few blocks only, remembers what
// it read until a file changes, and never writes. It is safe for concurrent use;
// its methods block on the disk.
//
// Limits: folders are searched four levels deep and to 20,000 entries.
package models

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"daisy/inference/gguf"
)

// ErrNotFound: no file of the library is that model; put one into a folder of
// the library.
var ErrNotFound = errors.New("this machine does not have the model")

const (
	maxDepth   = 4
	maxEntries = 20_000
)

// Model is a sound model file; a split one is listed by its first part.
type Model struct {
	Name         string // from the file, or the file's base name
	Path         string
	Fingerprint  string // equal on two machines that hold the same model
	Bytes        int64  // all parts
	Architecture string
}

// FileError says why a file or folder is not in the list.
type FileError struct {
	Path string
	Err  error
}

func (e *FileError) Error() string { return e.Err.Error() }
func (e *FileError) Unwrap() error { return e.Err }

// Library is a set of folders and files.
type Library struct {
	mu      sync.Mutex // guards all below
	folders []string
	files   []string
	known   map[string]entry // by path
}

// entry is what was read of a file when it had this size and time.
type entry struct {
	nBytes int64
	time   time.Time
	model  Model
	err    error
}

// New makes a library of the folders and what lies below them. A folder need
// not exist yet.
func New(folders ...string) *Library {
	return &Library{folders: slices.Clone(folders), known: map[string]entry{}}
}

// Add makes one file part of the library, wherever it lies, and returns what it
// is. A file that is no sound model is not added.
func (l *Library) Add(path string) (Model, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return Model{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	model, err := l.read(path)
	if err != nil {
		return Model{}, err
	}
	if !slices.Contains(l.files, path) {
		l.files = append(l.files, path)
	}
	return model, nil
}

// List returns the sound models by name and then path. The error joins a
// *FileError for each file or folder that is not; the list stands all the same.
func (l *Library) List() ([]Model, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	paths := map[string]bool{}
	var errs []error
	for _, folder := range l.folders {
		errs = append(errs, scan(folder, paths)...)
	}
	for _, file := range l.files {
		paths[file] = true
	}
	var list []Model
	for path := range paths {
		model, err := l.read(path)
		if err != nil {
			errs = append(errs, &FileError{Path: path, Err: err})
			continue
		}
		list = append(list, model)
	}
	for path := range l.known {
		if !paths[path] {
			delete(l.known, path)
		}
	}
	slices.SortFunc(list, func(a, b Model) int {
		if c := strings.Compare(a.Name, b.Name); c != 0 {
			return c
		}
		return strings.Compare(a.Path, b.Path)
	})
	slices.SortFunc(errs, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return list, errors.Join(errs...)
}

// Find returns a model with that fingerprint, or ErrNotFound.
func (l *Library) Find(fingerprint string) (Model, error) {
	list, _ := l.List() // unsound files are none that could be meant
	for _, m := range list {
		if m.Fingerprint == fingerprint {
			return m, nil
		}
	}
	return Model{}, ErrNotFound
}

// read describes one file; l.mu is held.
func (l *Library) read(path string) (Model, error) {
	info, err := os.Stat(path)
	if err != nil {
		delete(l.known, path)
		return Model{}, err
	}
	e, ok := l.known[path]
	if !ok || e.nBytes != info.Size() || !e.time.Equal(info.ModTime()) {
		e = entry{nBytes: info.Size(), time: info.ModTime()}
		e.model, e.err = describe(path)
		l.known[path] = e
	}
	return e.model, e.err
}

func describe(path string) (Model, error) {
	f, err := gguf.Open(path)
	if err != nil {
		return Model{}, err
	}
	defer f.Close()
	m := Model{Path: path, Bytes: f.Size()}
	m.Architecture, _ = f.String("general.architecture")
	if m.Architecture == "" {
		return Model{}, fmt.Errorf("%s: names no architecture", path)
	}
	if m.Name, _ = f.String("general.name"); m.Name == "" {
		m.Name = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	}
	m.Fingerprint, err = f.Fingerprint()
	return m, err
}

// laterPart matches the parts of a split model but its first.
var laterPart = regexp.MustCompile(`-(\d{5})-of-\d{5}\.gguf$`)

// scan adds the model files below folder to paths.
func scan(folder string, paths map[string]bool) (errs []error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return []error{&FileError{Path: folder, Err: err}}
	}
	nEntries := 0
	_ = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			if path != folder || !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, &FileError{Path: path, Err: err})
			}
			return nil
		}
		if nEntries++; nEntries > maxEntries {
			errs = append(errs, &FileError{Path: folder, Err: fmt.Errorf("%s: more than %d entries; the rest is not searched", folder, maxEntries)})
			return filepath.SkipAll
		}
		if d.IsDir() {
			rest := strings.TrimPrefix(path, folder)
			if path != folder && (strings.HasPrefix(d.Name(), ".") || strings.Count(rest, string(filepath.Separator)) > maxDepth) {
				return filepath.SkipDir
			}
			return nil
		}
		name := strings.ToLower(d.Name())
		part := laterPart.FindStringSubmatch(name)
		if filepath.Ext(name) == ".gguf" && !strings.HasPrefix(name, ".") && (part == nil || part[1] == "00001") {
			paths[path] = true
		}
		return nil
	})
	return errs
}
