package trust

import (
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"daisy/node/identity"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func id(i int) identity.ID {
	sum := sha256.Sum256(fmt.Append(nil, i))
	return identity.ID(strings.ToLower(strings.TrimRight(base32.StdEncoding.EncodeToString(sum[:]), "=")))
}

var then = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

func open(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(dir)
	require.NoError(t, err)
	return s
}

func TestItLasts(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	assert.Empty(t, s.List())
	_, err := os.Stat(filepath.Join(dir, File))
	require.ErrorIs(t, err, os.ErrNotExist, "nothing is written before there is something to keep")

	addrs := []netip.AddrPort{netip.MustParseAddrPort("[fe80::1%en0]:4711")}
	require.NoError(t, s.Put(Entry{ID: id(1), Name: "Kitchen <&>", Since: then, Addrs: addrs}))
	require.NoError(t, s.Put(Entry{ID: id(2), Name: "Attic", Since: then}))
	require.NoError(t, s.SetConsent(id(1), Always))
	require.NoError(t, s.Put(Entry{ID: id(1), Name: "Kitchen", Since: then, Addrs: addrs})) // paired again
	want := []Entry{
		{ID: id(2), Name: "Attic", Since: then, Consent: Ask},
		{ID: id(1), Name: "Kitchen", Since: then, Consent: Always, Addrs: addrs},
	}
	assert.Equal(t, want, s.List())
	s = open(t, dir)
	assert.Equal(t, want, s.List())
	info, err := os.Stat(filepath.Join(dir, File))
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode())
	assert.True(t, s.Has(id(1)))
	assert.False(t, s.Has(id(3)))

	require.NoError(t, s.Remove(id(1)))
	require.ErrorIs(t, s.Remove(id(1)), ErrUnknown)
	require.ErrorIs(t, s.SetConsent(id(1), Never), ErrUnknown)
	require.ErrorIs(t, s.SetConsent(id(2), "often"), ErrConsent)
	assert.Equal(t, want[:1], open(t, dir).List())
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, left, 1, "no half-written file stays")
}

func TestHandedIn(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	require.NoError(t, s.Hand(id(1), id(2)))
	require.Error(t, s.Hand("nobody"))
	require.NoError(t, s.SetConsent(id(1), Never))
	e, ok := s.Get(id(1))
	assert.True(t, ok)
	assert.True(t, e.Handed)
	assert.Equal(t, Never, e.Consent)
	assert.Empty(t, open(t, dir).List(), "for this run alone")
	require.NoError(t, s.Put(Entry{ID: id(1), Name: "Kitchen", Since: then}))
	assert.Len(t, s.List(), 2)
	assert.Len(t, open(t, dir).List(), 1)
	require.NoError(t, s.Remove(id(1)))
	require.NoError(t, s.Remove(id(2)))
	assert.Empty(t, s.List())
}

func TestFull(t *testing.T) {
	s := open(t, t.TempDir())
	s.write = func(string, []byte) error { return nil } // the disk is not what is tested
	for i := range maxEntries {
		require.NoError(t, s.Put(Entry{ID: id(i), Name: strings.Repeat("<", 63), Since: then, Addrs: []netip.AddrPort{
			netip.MustParseAddrPort("[2001:db8:1111:2222:3333:4444:5555:6666]:65535"), netip.MustParseAddrPort("[2001:db8:1111:2222:3333:4444:5555:6667]:65535"),
			netip.MustParseAddrPort("[2001:db8:1111:2222:3333:4444:5555:6668]:65535"), netip.MustParseAddrPort("[2001:db8:1111:2222:3333:4444:5555:6669]:65535"),
		}}))
	}
	require.ErrorIs(t, s.Put(Entry{ID: id(maxEntries), Since: then}), ErrFull)
	require.NoError(t, s.Put(Entry{ID: id(0), Name: "again", Since: then}))
	data, err := encode(s.kept)
	require.NoError(t, err)
	assert.Less(t, len(data), maxFile, "a full list can be read back")
	got, err := decode(data)
	require.NoError(t, err)
	assert.Len(t, got, maxEntries)
}

// When the file cannot be written, nothing has changed: neither what counts now
// nor what the next start reads.
func TestDiskFaults(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	require.NoError(t, s.Put(Entry{ID: id(1), Name: "Kitchen", Since: then}))
	before := s.List()
	full := errors.New("no space left")
	s.write = func(string, []byte) error { return full }
	require.ErrorIs(t, s.Put(Entry{ID: id(2), Since: then}), full)
	require.ErrorIs(t, s.SetConsent(id(1), Always), full)
	require.ErrorIs(t, s.Remove(id(1)), full)
	assert.Equal(t, before, s.List())
	assert.Equal(t, before, open(t, dir).List())

	s.write = replace
	require.NoError(t, os.Rename(dir, dir+"-away"))
	require.Error(t, s.Put(Entry{ID: id(2), Since: then}), "the folder is gone")
	require.NoError(t, os.Rename(dir+"-away", dir))
	assert.Equal(t, before, s.List())

	// A folder in the file's place: the rename fails and leaves nothing behind.
	other := t.TempDir()
	s = open(t, other)
	require.NoError(t, os.MkdirAll(filepath.Join(other, File, "x"), 0o700))
	require.Error(t, s.Put(Entry{ID: id(1), Since: then}))
	left, err := os.ReadDir(other)
	require.NoError(t, err)
	assert.Len(t, left, 1)
}

func TestDamagedFiles(t *testing.T) {
	good, err := encode(map[identity.ID]Entry{id(1): {ID: id(1), Name: "Kitchen", Since: then, Consent: Ask}})
	require.NoError(t, err)
	entry := func(fields string) string { return `{"version":1,"nodes":[{` + fields + `}]}` }
	one := fmt.Sprintf(`"id":%q,"name":"a","since":"2026-12-01T12:00:00Z","consent":"ask"`, id(1))
	for name, data := range map[string]string{
		"empty":          "",
		"cut":            string(good[:len(good)/2]),
		"more after it":  string(good) + "x",
		"later version":  `{"version":2,"nodes":[]}`,
		"no version":     `{"nodes":[]}`,
		"twice":          `{"version":1,"nodes":[{` + one + `},{` + one + `}]}`,
		"no id":          entry(`"name":"a","consent":"ask"`),
		"odd name":       entry(strings.Replace(one, `"a"`, `"a\u202e"`, 1)),
		"odd consent":    entry(strings.Replace(one, "ask", "maybe", 1)),
		"odd address":    entry(one + `,"addresses":["nowhere"]`),
		"no port":        entry(one + `,"addresses":["10.0.0.1:0"]`),
		"five addresses": entry(one + `,"addresses":["1.1.1.1:1","1.1.1.1:2","1.1.1.1:3","1.1.1.1:4","1.1.1.1:5"]`),
		"too long":       string(good) + strings.Repeat(" ", maxFile),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, File)
			require.NoError(t, os.WriteFile(path, []byte(data), 0o600))
			_, err := Open(dir)
			require.ErrorContains(t, err, "damaged")
			require.ErrorContains(t, err, path)
			kept, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.Equal(t, data, string(kept), "it is left as it is")
		})
	}
}

func TestOpenToOthers(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, File)
	require.NoError(t, open(t, dir).Put(Entry{ID: id(1), Since: then}))
	require.NoError(t, os.Chmod(path, 0o620))
	_, err := Open(dir)
	require.ErrorContains(t, err, "chmod 600 "+path)
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Mkdir(path, 0o700))
	_, err = Open(dir)
	require.ErrorContains(t, err, "not a regular file")
}

func TestManyAtOnce(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	var work sync.WaitGroup
	for i := range 20 {
		work.Go(func() {
			assert.NoError(t, s.Put(Entry{ID: id(i), Since: then}))
			if i%2 == 0 {
				assert.NoError(t, s.Remove(id(i)))
			}
			s.List()
		})
	}
	work.Wait()
	assert.Len(t, s.List(), 10)
	assert.Equal(t, s.List(), open(t, dir).List())
}

// FuzzFile: a file is an error or sound, and stays what it is.
func FuzzFile(f *testing.F) {
	good, err := encode(map[identity.ID]Entry{id(1): {ID: id(1), Name: "Kitchen", Since: then, Consent: Never}})
	require.NoError(f, err)
	f.Add(good)
	f.Add([]byte(`{"version":1,"nodes":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		entries, err := decode(data)
		if err != nil {
			return
		}
		again, err := encode(entries)
		require.NoError(t, err)
		got, err := decode(again)
		require.NoError(t, err)
		require.Len(t, got, len(entries))
		for id, e := range entries {
			require.True(t, e.Since.Equal(got[id].Since))
			e.Since = got[id].Since
			require.Equal(t, e, got[id])
		}
	})
}
