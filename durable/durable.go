// Package durable writes files that survive a crash or a power cut. Databases and logs have their own ways; this is the
// way of whole files.
package durable

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
)

// WriteFile replaces a file. After a crash at any moment the file has its old content or the new one, and once WriteFile
// has returned nil it has the new one. The content is first written to name + ".tmp", which a crash may leave behind and
// the next WriteFile replaces; so a file has one writer at a time.
func WriteFile(name string, data []byte, mode os.FileMode) error {
	temporary := name + ".tmp"
	err := WriteContent(temporary, data, mode)
	if err == nil {
		err = os.Rename(temporary, name)
	}
	if err != nil {
		return errors.Join(err, removeIfThere(temporary))
	}
	return SyncFolder(filepath.Dir(name))
}

// WriteContent writes a file and waits until its content is on the disk. Its name is safe after SyncFolder; until then,
// and after an error, there may be no file or a part of it.
func WriteContent(name string, data []byte, mode os.FileMode) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// SyncFolder waits until the names in a folder are on the disk. Windows offers no such call and needs none.
func SyncFolder(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func removeIfThere(name string) error {
	if err := os.Remove(name); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
