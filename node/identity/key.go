package identity

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// KeyFile is the name of the key file in a node's folder: PKCS #8 in PEM, mode
// 0600.
const KeyFile = "identity.pem"

// maxKeyFile bounds what is read of a key file; a sound one has 119 bytes.
const maxKeyFile = 4 << 10

// Identity is a node's key with the certificate made from it.
type Identity struct {
	id  ID
	key ed25519.PrivateKey
	// certificate is the self-signed one that goes with key.
	certificate certificate
}

// ID returns the node's ID.
func (i *Identity) ID() ID { return i.id }

// PublicKey returns the half of the key that others may know. It must not be
// changed.
func (i *Identity) PublicKey() ed25519.PublicKey { return i.key.Public().(ed25519.PublicKey) }

// Load reads the key in dir, or makes one when there is none: dir is then
// created if needed (mode 0700) and the file appears whole or not at all. Two
// processes that start at once agree on one key.
//
// A file that is there is never changed or overwritten: if it is damaged, no
// Ed25519 key, or readable by others, the error says what to do.
func Load(dir string) (*Identity, error) {
	path := filepath.Join(dir, KeyFile)
	key, err := readKey(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := createKey(dir, path); err != nil {
			return nil, fmt.Errorf("making this node's key: %w", err)
		}
		key, err = readKey(path)
	}
	if err != nil {
		return nil, err
	}
	return fromKey(key)
}

func fromKey(key ed25519.PrivateKey) (*Identity, error) {
	id := IDOf(key.Public().(ed25519.PublicKey))
	cert, err := newCertificate(id, key)
	if err != nil {
		return nil, err
	}
	return &Identity{id: id, key: key, certificate: cert}, nil
}

func readKey(path string) (ed25519.PrivateKey, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening this node's key: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("reading this node's key: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("this node's key %s is not a regular file", path)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("this node's key %s can be read or changed by others (mode %04o); "+
			"if nobody did, run: chmod 600 %s; otherwise move it away to become a new node",
			path, info.Mode().Perm(), path)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxKeyFile+1))
	if err != nil {
		return nil, fmt.Errorf("reading this node's key: %w", err)
	}
	key, err := parseKey(data)
	if err != nil {
		return nil, fmt.Errorf("this node's key %s is damaged (%w); restore it from a backup, "+
			"or move it away to become a new node", path, err)
	}
	return key, nil
}

func parseKey(data []byte) (ed25519.PrivateKey, error) {
	if len(data) > maxKeyFile {
		return nil, fmt.Errorf("longer than %d bytes", maxKeyFile)
	}
	block, rest := pem.Decode(data)
	if block == nil || block.Type != "PRIVATE KEY" || len(rest) != 0 {
		return nil, errors.New("not one PEM block of a private key")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, err
	}
	key, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("a %T, not an Ed25519 key", parsed)
	}
	return key, nil
}

// createKey puts a new key at path. When another process was faster, its key
// stays and nil is returned.
func createKey(dir, path string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	// os.CreateTemp makes the file with mode 0600.
	tmp, err := os.CreateTemp(dir, KeyFile+".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
	if err == nil {
		err = tmp.Sync()
	}
	if cerr := tmp.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	// A link, unlike a rename, never replaces what is there.
	if err := os.Link(tmp.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(dir)
}

// syncDir makes a new name in dir survive a power cut.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
