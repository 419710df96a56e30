package program

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// folderName begins the names of environments' folders, newName those of such that are not marked yet.
	folderName = "lightswarm-environment-"
	newName    = "lightswarm-new-"
)

// newFolder makes a folder for an environment, and removes those that killed nodes of this user left. The folder is in use
// until its lock is closed.
func newFolder() (dir string, lock *os.File, err error) {
	parent, err := filepath.EvalSymlinks(os.TempDir()) // links on the way there are none of the sandbox's business
	if err != nil {
		return "", nil, err
	}
	removeLeft(parent)
	if dir, err = os.MkdirTemp(parent, newName); err != nil {
		return "", nil, err
	}
	file, err := os.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		err = unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	// Only what is locked has the name of a folder that can be left.
	named := filepath.Join(parent, folderName+strings.TrimPrefix(filepath.Base(dir), newName))
	if err == nil {
		err = os.Rename(dir, named)
	}
	if err != nil {
		return "", nil, errors.Join(fmt.Errorf("make a folder: %w", err), file.Close(), os.RemoveAll(dir))
	}
	return named, file, nil
}

// removeLeft removes the folders of this user's that nobody uses. What fails is tried again by the next.
func removeLeft(parent string) {
	folders, err := filepath.Glob(filepath.Join(parent, folderName+"*"))
	if err != nil {
		return
	}
	for _, dir := range folders {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || int(info.Sys().(*syscall.Stat_t).Uid) != os.Geteuid() {
			continue
		}
		file, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|unix.O_NOFOLLOW, 0)
		if err != nil {
			os.Remove(dir) // it is empty if all but itself has been removed
			continue
		}
		if unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			removeFolder(dir) //nolint:errcheck // see above
		}
		file.Close()
	}
}
