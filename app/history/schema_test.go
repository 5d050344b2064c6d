package history

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

var golden = flag.Bool("golden", false, "write testdata instead of comparing with it")

// The schema is frozen: a change must come as a new migration, and shows here.
func TestSchemaIsFrozen(t *testing.T) {
	s := open(t, filepath.Join(t.TempDir(), "h.db"))
	got := schema(t, s.db)
	const file = "testdata/schema.sql"
	if *golden {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

func schema(t *testing.T, db *sql.DB) string {
	t.Helper()
	version, err := userVersion(t.Context(), db)
	require.NoError(t, err)
	rows, err := db.Query(`SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY type, name`)
	require.NoError(t, err)
	defer rows.Close()
	var b strings.Builder
	fmt.Fprintf(&b, "-- schema version %d\n", version)
	for rows.Next() {
		var q string
		require.NoError(t, rows.Scan(&q))
		fmt.Fprintf(&b, "%s;\n", q)
	}
	require.NoError(t, rows.Err())
	return b.String()
}

// A migration that fails half-way leaves the file as it was.
func TestMigrationIsOneTransaction(t *testing.T) {
	path := filepath.Join(t.TempDir(), "h.db")
	s := open(t, path)
	before := schema(t, s.db)
	released := migrations
	migrations = append(released[:len(released):len(released)],
		`CREATE TABLE half (x); INSERT INTO nowhere VALUES (1);`)
	t.Cleanup(func() { migrations = released })
	require.NoError(t, s.Close())

	_, err := Open(t.Context(), path)
	require.ErrorContains(t, err, fmt.Sprintf("bringing the history to schema %d", len(migrations)))

	migrations = released
	require.Equal(t, before, schema(t, open(t, path).db))
}

// Two that open a new file at once both get a whole one.
func TestMigrationsRace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "h.db")
	stores := make([]*Store, 4)
	var wg sync.WaitGroup
	for i := range stores {
		wg.Go(func() {
			s, err := Open(context.Background(), path)
			if err != nil {
				t.Error(err)
				return
			}
			stores[i] = s
		})
	}
	wg.Wait()
	for _, s := range stores {
		if s != nil {
			require.NoError(t, s.Close())
		}
	}
}
