package trust

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"daisy/node/identity"
)

// File is the name of the file in a node's folder.
const File = "trust.json"

// maxEntries is more than there are Macs on any desk.
const maxEntries = 256

// Errors that callers tell apart.
var (
	// ErrUnknown: the node is not trusted, so there is nothing to change.
	ErrUnknown = errors.New("this node is not paired with it")
	// ErrFull: 256 nodes are trusted; remove one first.
	ErrFull = errors.New("too many nodes are paired; remove one first")
)

// Store is the list of trusted nodes.
type Store struct {
	path  string
	write func(path string, data []byte) error // replace; tests make it fail

	writing sync.Mutex // held while the file is changed

	mu     sync.Mutex // guards the maps, never held during I/O
	kept   map[identity.ID]Entry
	handed map[identity.ID]Entry
}

// Open reads the list in dir; without a file it is empty. Nothing is written.
func Open(dir string) (*Store, error) {
	s := &Store{path: filepath.Join(dir, File), write: replace, handed: map[identity.ID]Entry{}}
	var err error
	s.kept, err = read(s.path)
	return s, err
}

// Hand trusts nodes until the process ends, besides those in the file.
func (s *Store) Hand(ids ...identity.ID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		e := Entry{ID: id, Since: time.Now(), Consent: Ask, Handed: true}
		if err := e.check(); err != nil {
			return err
		}
		if len(s.handed) >= maxEntries {
			return ErrFull
		}
		s.handed[id] = e
	}
	return nil
}

// Has says whether a node is trusted.
func (s *Store) Has(id identity.ID) bool {
	_, ok := s.Get(id)
	return ok
}

// Get returns a node's entry. What a person confirmed counts before what was
// handed in.
func (s *Store) Get(id identity.ID) (Entry, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.kept[id]; ok {
		return e, true
	}
	e, ok := s.handed[id]
	return e, ok
}

// List returns all entries, by name and then ID.
func (s *Store) List() []Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]Entry, 0, len(s.kept)+len(s.handed))
	for _, e := range s.kept {
		list = append(list, e)
	}
	for id, e := range s.handed {
		if _, twice := s.kept[id]; !twice {
			list = append(list, e)
		}
	}
	sortEntries(list)
	return list
}

func sortEntries(list []Entry) {
	slices.SortFunc(list, func(a, b Entry) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
}

// Put trusts a node from now on, across restarts. An entry of the same node is
// replaced, but keeps its policy if e has none; a new one asks. On an error
// nothing has changed.
func (s *Store) Put(e Entry) error {
	return s.change(func(kept map[identity.ID]Entry) error {
		if e.Consent == "" {
			e.Consent = cmp.Or(kept[e.ID].Consent, Ask)
		}
		e.Handed = false
		if err := e.check(); err != nil {
			return err
		}
		if _, old := kept[e.ID]; !old && len(kept) >= maxEntries {
			return ErrFull
		}
		kept[e.ID] = e
		return nil
	})
}

// SetConsent changes a node's policy. ErrUnknown if it is not trusted. On an
// error nothing has changed.
func (s *Store) SetConsent(id identity.ID, c Consent) error {
	if _, err := ParseConsent(string(c)); err != nil {
		return err
	}
	if e, ok := s.Get(id); ok && e.Handed {
		e.Consent = c
		s.mu.Lock()
		defer s.mu.Unlock()
		s.handed[id] = e
		return nil
	}
	return s.change(func(kept map[identity.ID]Entry) error {
		e, ok := kept[id]
		if !ok {
			return ErrUnknown
		}
		e.Consent = c
		kept[id] = e
		return nil
	})
}

// Remove withdraws the trust in a node. ErrUnknown if there was none. When the
// file cannot be written the node stays trusted, and the error says so.
func (s *Store) Remove(id identity.ID) error {
	if !s.Has(id) {
		return ErrUnknown
	}
	s.mu.Lock()
	_, stored := s.kept[id]
	s.mu.Unlock()
	if stored {
		if err := s.change(func(kept map[identity.ID]Entry) error {
			delete(kept, id)
			return nil
		}); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.handed, id)
	return nil
}

// change edits a copy of the list, writes it, and only then lets it count.
func (s *Store) change(edit func(map[identity.ID]Entry) error) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	next := make(map[identity.ID]Entry, len(s.kept)+1)
	for id, e := range s.kept {
		next[id] = e
	}
	s.mu.Unlock()
	if err := edit(next); err != nil {
		return err
	}
	data, err := encode(next)
	if err != nil {
		return err
	}
	if err := s.write(s.path, data); err != nil {
		return fmt.Errorf("keeping the list of paired nodes: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = next
	return nil
}
