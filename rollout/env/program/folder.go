package program

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// lockName is a file in an environment's folder that is locked as long as the folder is in use, which a killed node's is not.
const lockName = "lock"

// removeFolder removes an environment's folder, its lock last: what does not come to an end somebody else can go on with.
func removeFolder(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		if err == nil && entry.Name() != lockName {
			err = removeAll(filepath.Join(dir, entry.Name()))
		}
	}
	if err != nil {
		return err
	}
	return os.RemoveAll(dir)
}

// removeAll removes a folder that programs have worked in, however deep it is and whatever may be read of it: folders in
// folders come out of them first. Nothing works in it any more.
func removeAll(dir string) error {
	if err := os.Remove(dir); err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	flat, err := os.MkdirTemp(filepath.Dir(dir), "remove-")
	if err != nil {
		return err
	}
	defer os.Remove(flat)
	folders := []string{dir}
	for n := 0; len(folders) > 0; {
		folder := folders[len(folders)-1]
		folders = folders[:len(folders)-1]
		if err := os.Chmod(folder, 0o700); err != nil {
			return err
		}
		entries, err := os.ReadDir(folder)
		if err != nil {
			return err
		}
		for _, entry := range entries {
			name := filepath.Join(folder, entry.Name())
			if !entry.IsDir() {
				err = os.Remove(name)
			} else if err = os.Chmod(name, 0o700); err == nil { // to be moved it has to be writable
				n++
				out := filepath.Join(flat, strconv.Itoa(n))
				folders = append(folders, out)
				err = os.Rename(name, out)
			}
			if err != nil {
				return err
			}
		}
		if err := os.Remove(folder); err != nil {
			return err
		}
	}
	return nil
}
