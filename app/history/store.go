package history

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	openTimeout  = 15 * time.Second // for Open, whatever its context says
	closeTimeout = 5 * time.Second  // for the last writes in Close
)

// Store is an open history file.
type Store struct {
	path     string
	db       *sql.DB
	presence *presence

	mu      sync.Mutex // guards the fields below
	closed  bool
	answers map[*Answer]struct{} // begun and not finished
}

// Open opens the history file at path, creating it (readable by its owner
// only) and its folder as needed, and brings its schema up to date. It blocks
// for file access and returns ErrNewer or ErrDamaged, with the file untouched,
// when it cannot be ours. The caller closes the Store.
func Open(ctx context.Context, path string) (*Store, error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("opening the history: %w", err)
	}
	presence, alone, err := enter(ctx, path+".lock")
	if err != nil {
		return nil, fmt.Errorf("opening the history: %w", err)
	}
	s := &Store{path: path, presence: presence, answers: map[*Answer]struct{}{}}
	if err := s.open(ctx, alone); err != nil {
		if s.db != nil {
			s.db.Close()
		}
		presence.leave()
		return nil, fmt.Errorf("opening the history %s: %w", path, explain(err))
	}
	return s, nil
}

func (s *Store) open(ctx context.Context, alone bool) error {
	// SQLite would create the file with the umask's rights.
	f, err := os.OpenFile(s.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if s.db, err = sql.Open("sqlite3", dsn(s.path)); err != nil {
		return err
	}
	s.db.SetMaxOpenConns(2) // one writes an answer, one reads for the windows
	if err := migrate(ctx, s.db); err != nil {
		return err
	}
	if !alone {
		return nil
	}
	if _, err := s.db.ExecContext(ctx,
		`UPDATE messages SET status = ? WHERE status = ?`, StatusInterrupted, StatusStreaming); err != nil {
		return err
	}
	return s.presence.share()
}

// dsn: writers take the lock at once (a later upgrade could fail instead of
// waiting), and each commit reaches the disk, as each is a second of an answer.
func dsn(path string) string {
	q := url.Values{
		"_busy_timeout": {"5000"},
		"_foreign_keys": {"1"},
		"_synchronous":  {"FULL"},
		"_txlock":       {"immediate"},
	}
	return (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: q.Encode()}).String()
}

// explain maps what SQLite says about damaged files to ErrDamaged.
func explain(err error) error {
	if saysDamaged(err) {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return err
}

// Path is the file's path as given to Open.
func (s *Store) Path() string { return s.path }

// Close ends answers that are still open as StatusInterrupted, with the text
// they have, and closes the file. It waits for running writes; more calls
// return nil.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	open := make([]*Answer, 0, len(s.answers))
	for a := range s.answers {
		open = append(open, a)
	}
	s.mu.Unlock()

	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	var errs []error
	for _, a := range open {
		if err := a.Finish(ctx, Outcome{Status: StatusInterrupted}); err != nil && !errors.Is(err, ErrClosed) {
			errs = append(errs, err)
		}
	}
	errs = append(errs, s.db.Close())
	s.presence.leave()
	return errors.Join(errs...)
}

func toTime(ms int64) time.Time { return time.UnixMilli(ms) }

func now() int64 { return time.Now().UnixMilli() }
