//go:build cgo

package history

import (
	"errors"

	sqlite3 "github.com/mattn/go-sqlite3"
)

// saysDamaged: SQLite found that the file is no database or a broken one.
func saysDamaged(err error) bool {
	var e sqlite3.Error
	return errors.As(err, &e) && (e.Code == sqlite3.ErrNotADB || e.Code == sqlite3.ErrCorrupt)
}

// saysNoReference: a row names one that does not exist.
func saysNoReference(err error) bool {
	var e sqlite3.Error
	return errors.As(err, &e) && e.ExtendedCode == sqlite3.ErrConstraintForeignKey
}
