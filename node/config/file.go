package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/lightswarm/lightswarm/durable"
)

// createFile makes path durably, unless it exists: then the error is fs.ErrExist and the file is left as it is. Of
// several processes that try at once, one succeeds.
func createFile(path string, data []byte, mode os.FileMode) error {
	temporary, err := writeTemporary(path, data, mode)
	if err != nil {
		return err
	}
	// A link, unlike a rename, never replaces what another process made meanwhile.
	err = os.Link(temporary, path)
	if err := errors.Join(err, os.Remove(temporary)); err != nil {
		return err
	}
	return durable.SyncFolder(filepath.Dir(path))
}

// writeTemporary writes and syncs data under a temporary name beside path.
func writeTemporary(path string, data []byte, mode os.FileMode) (string, error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return "", errors.Join(err, os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// readSecret reads a file that only its owner may read.
func readSecret(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 && runtime.GOOS != "windows" {
		return nil, fmt.Errorf("%s can be read by others (mode %04o): run chmod 600 on it; if others may have read it, replace it", path, mode)
	}
	return os.ReadFile(path)
}
