package rollout

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/lightswarm/lightswarm/durable"
	"github.com/lightswarm/lightswarm/wire"
)

// Folder keeps what a worker makes in a folder, with no network: it is a worker's Announcer, Counters and Evaluations.
//
//	v<version>-<counter>.bundle               a training group; sorted by name, in order of version and counter
//	evaluations/v<version>-<block>-<purpose>.bundle
//	counters                                  the next draw counter; then each reserved one and its version
//
// Every file appears whole or not at all, and is on the disk before the method that writes it returns. A reservation ends once its bundle is there. One
// process uses a folder at a time.
type Folder struct {
	dir string

	mu       sync.Mutex
	next     uint64            // guarded by mu
	reserved map[uint64]uint64 // guarded by mu; the version of each reserved counter
}

const (
	countersName   = "counters"
	evaluationsDir = "evaluations"
	bundleSuffix   = ".bundle"
	fileMode       = 0o644
)

// OpenFolder opens a folder, which it creates when it does not exist.
func OpenFolder(dir string) (*Folder, error) {
	f := &Folder{dir: dir, reserved: make(map[uint64]uint64)}
	if err := f.open(); err != nil {
		return nil, fmt.Errorf("open rollout folder %s: %w", dir, err)
	}
	return f, nil
}

func (f *Folder) open() error {
	if err := os.MkdirAll(filepath.Join(f.dir, evaluationsDir), 0o755); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(f.dir, countersName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	numbers := make([]uint64, 0, 16)
	for _, field := range strings.Fields(string(text)) {
		n, err := strconv.ParseUint(field, 10, 64)
		if err != nil {
			return fmt.Errorf("%s: %w", countersName, err)
		}
		numbers = append(numbers, n)
	}
	if len(numbers)%2 != 1 {
		return fmt.Errorf("%s has %d numbers, want the next counter and pairs", countersName, len(numbers))
	}
	f.next = numbers[0]
	for pair := range slices.Chunk(numbers[1:], 2) {
		counter, version := pair[0], pair[1]
		if _, err := os.Stat(f.groupName(version, counter)); errors.Is(err, fs.ErrNotExist) {
			f.reserved[counter] = version
		} else if err != nil {
			return err
		}
	}
	return nil
}

// save writes the counters. The caller holds mu.
func (f *Folder) save() error {
	text := fmt.Sprintln(f.next)
	for _, counter := range slices.Sorted(maps.Keys(f.reserved)) {
		text += fmt.Sprintln(counter, f.reserved[counter])
	}
	return durable.WriteFile(filepath.Join(f.dir, countersName), []byte(text), fileMode)
}

// Announce implements Announcer.
func (f *Folder) Announce(_ context.Context, a wire.Announcement, body []byte) error {
	if a.Purpose != wire.PurposeTrain {
		return durable.WriteFile(f.evaluationName(a.PolicyVersion, a.Purpose, a.Counter), body, fileMode)
	}
	if err := durable.WriteFile(f.groupName(a.PolicyVersion, a.Counter), body, fileMode); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.reserved, a.Counter)
	return nil
}

// Resume implements Counters.
func (f *Folder) Resume(_ context.Context, version uint64) ([]uint64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.reserved, func(_, v uint64) bool { return v != version })
	if err := f.save(); err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(f.reserved)), nil
}

// Reserve implements Counters.
func (f *Folder) Reserve(_ context.Context, version uint64) (uint64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	counter := f.next
	f.next++
	f.reserved[counter] = version
	if err := f.save(); err != nil {
		return 0, err // the counter stays reserved: the file may have been replaced
	}
	return counter, nil
}

// Claim implements Evaluations.
func (f *Folder) Claim(version uint64, purpose wire.Purpose, block uint64) Claim {
	if _, err := os.Stat(f.evaluationName(version, purpose, block)); err != nil {
		return Unclaimed
	}
	return Settled
}

func (f *Folder) groupName(version, counter uint64) string {
	return filepath.Join(f.dir, fmt.Sprintf("v%08d-%012d%s", version, counter, bundleSuffix))
}

func (f *Folder) evaluationName(version uint64, purpose wire.Purpose, block uint64) string {
	return filepath.Join(f.dir, evaluationsDir, fmt.Sprintf("v%08d-%06d-%s%s", version, block, purpose, bundleSuffix))
}
