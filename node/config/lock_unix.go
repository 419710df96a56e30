//go:build unix

package config

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// lockFile opens path, creating it if needed, and locks it until it is closed. ErrLocked if another open file holds
// the lock, in this process or elsewhere.
func lockFile(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, errors.Join(ErrLocked, f.Close())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("flock %s: %w", path, err), f.Close())
	}
	return f, nil
}
