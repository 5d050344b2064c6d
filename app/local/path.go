package local

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// maxPath is how long a socket's path may be on every system, its end included.
const maxPath = 104

// socketPath is where the node of a folder is reached: in a folder of its own
// within, which others cannot enter, or, where that path is too long for a
// socket, in one below /tmp.
func socketPath(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	own, name := filepath.Join(dir, "run"), "daisy.sock"
	if len(own)+1+len(name) >= maxPath {
		sum := sha256.Sum256([]byte(dir))
		own, name = filepath.Join("/tmp", "daisy-"+strconv.Itoa(os.Getuid())), hex.EncodeToString(sum[:8])+".sock"
	}
	return filepath.Join(own, name), nil
}

// private checks that the socket's folder is this user's alone: below /tmp
// anybody could have been there first.
func private(folder string) error {
	info, err := os.Lstat(folder)
	if err != nil {
		return err
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); !info.IsDir() || info.Mode().Perm() != 0o700 || !ok || int(stat.Uid) != os.Getuid() {
		return fmt.Errorf("%s is not a folder of this user alone (mode 0700)", folder)
	}
	return nil
}
