package rollout

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/lightswarm/lightswarm/wire"
)

// Folder keeps what a worker makes in a folder, with no network: it is a worker's Announcer, Counters and Evaluations.
//
//	v<version>-<counter>.bundle               a training group; sorted by name, in order of version and counter
//	evaluations/v<version>-<block>-<purpose>.bundle
//	next                                      the next draw counter, in decimal
//
// Everything is written to a temporary file, synced and renamed. A counter below next without a bundle is pending. One
// process uses a folder at a time.
type Folder struct {
	dir string

	mu   sync.Mutex
	next uint64          // guarded by mu
	done map[uint64]bool // guarded by mu; counters with a bundle
}

const (
	nextName       = "next"
	evaluationsDir = "evaluations"
	bundleSuffix   = ".bundle"
)

// OpenFolder opens a folder, which it creates when it does not exist.
func OpenFolder(dir string) (*Folder, error) {
	f := &Folder{dir: dir, done: make(map[uint64]bool)}
	if err := f.open(); err != nil {
		return nil, fmt.Errorf("open rollout folder %s: %w", dir, err)
	}
	return f, nil
}

func (f *Folder) open() error {
	if err := os.MkdirAll(filepath.Join(f.dir, evaluationsDir), 0o755); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(f.dir, nextName))
	if err == nil {
		f.next, err = strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return err
	}
	names, err := filepath.Glob(filepath.Join(f.dir, "v*-*"+bundleSuffix))
	if err != nil {
		return err
	}
	for _, name := range names {
		_, counter, _ := strings.Cut(strings.TrimSuffix(filepath.Base(name), bundleSuffix), "-")
		n, err := strconv.ParseUint(counter, 10, 64)
		if err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(name), err)
		}
		f.done[n] = true
	}
	return nil
}

// Announce implements Announcer.
func (f *Folder) Announce(_ context.Context, a wire.Announcement, body []byte) error {
	name := f.evaluationName(a.PolicyVersion, a.Purpose, a.Counter)
	if a.Purpose == wire.PurposeTrain {
		name = filepath.Join(f.dir, fmt.Sprintf("v%08d-%012d%s", a.PolicyVersion, a.Counter, bundleSuffix))
	}
	if err := writeWhole(name, body); err != nil {
		return err
	}
	if a.Purpose == wire.PurposeTrain {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.done[a.Counter] = true
	}
	return nil
}

// Pending implements Counters.
func (f *Folder) Pending(context.Context) ([]uint64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var pending []uint64
	for c := range f.next {
		if !f.done[c] {
			pending = append(pending, c)
		}
	}
	return pending, nil
}

// Reserve implements Counters.
func (f *Folder) Reserve(context.Context) (uint64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	text := strconv.FormatUint(f.next+1, 10) + "\n"
	if err := writeWhole(filepath.Join(f.dir, nextName), []byte(text)); err != nil {
		return 0, err
	}
	f.next++
	return f.next - 1, nil
}

// Announced implements Evaluations.
func (f *Folder) Announced(version uint64, purpose wire.Purpose, block uint64) bool {
	_, err := os.Stat(f.evaluationName(version, purpose, block))
	return err == nil
}

func (f *Folder) evaluationName(version uint64, purpose wire.Purpose, block uint64) string {
	return filepath.Join(f.dir, evaluationsDir, fmt.Sprintf("v%08d-%06d-%s%s", version, block, purpose, bundleSuffix))
}

// writeWhole writes a file that appears whole or not at all, and survives a power cut once writeWhole has returned.
func writeWhole(name string, data []byte) (err error) {
	file, err := os.CreateTemp(filepath.Dir(name), ".*.tmp")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}()
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	if err = os.Rename(file.Name(), name); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(name))
}
