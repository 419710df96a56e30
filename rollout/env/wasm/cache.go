package wasm

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	// MaxCacheBytes bounds Options.Cache: once a module has been compiled, those that were used longest ago are removed
	// beyond it.
	MaxCacheBytes = 1 << 30
	// emptyFor is how old a folder without a file is before it is removed: another process may be about to put one there.
	emptyFor = 24 * time.Hour
)

// cached is a file of the cache.
type cached struct {
	path  string
	bytes int64
	used  time.Time
}

// beyond chooses what is to be removed so that the rest has at most limit bytes: what was used longest ago.
func beyond(files []cached, limit int64) []cached {
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b cached) int { return cmp.Or(b.used.Compare(a.used), cmp.Compare(a.path, b.path)) })
	var sum int64
	for i, f := range files {
		if sum += f.bytes; sum > limit {
			return files[i:]
		}
	}
	return nil
}

// moduleFolder is where a module's compiled form is within the cache: in a folder of its own, since the names of the
// engine's files say nothing about what is in use.
func moduleFolder(cache string, module []byte) string {
	sum := sha256.Sum256(module)
	return filepath.Join(cache, hex.EncodeToString(sum[:]))
}

// use notes that what is in a module's folder is used now.
func use(folder string, now time.Time) error {
	return walk(folder, func(path string, info fs.FileInfo) error {
		return ignoreGone(os.Chtimes(path, now, now))
	})
}

// prune removes from the cache what is beyond limit, and folders that have been empty for long. Others may use the cache
// meanwhile: who has opened a file goes on with it, who finds none compiles anew.
func prune(cache string, limit int64, now time.Time) error {
	var files []cached
	var folders []string
	err := walk(cache, func(path string, info fs.FileInfo) error {
		switch {
		case info.Mode().IsRegular():
			files = append(files, cached{path, info.Size(), info.ModTime()})
		case info.IsDir() && path != cache && now.Sub(info.ModTime()) > emptyFor:
			folders = append(folders, path)
		}
		return nil
	})
	for _, f := range beyond(files, limit) {
		err = errors.Join(err, ignoreGone(os.Remove(f.path)))
	}
	for _, folder := range slices.Backward(folders) { // The inner ones first.
		_ = os.Remove(folder) // It fails unless the folder is empty.
	}
	return err
}

// walk visits what is in a folder, which may change meanwhile, and the folder itself.
func walk(folder string, visit func(path string, info fs.FileInfo) error) error {
	return filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return ignoreGone(err)
		}
		info, err := entry.Info()
		if err != nil {
			return ignoreGone(err)
		}
		return visit(path, info)
	})
}

// ignoreGone is an error unless it says that something is not there: another process may have removed it.
func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
