package store

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// ErrFailed says that the database could not be written before and takes no more changes: what is on disk is sound, but
// it is not known which of the latest changes it has. The process restarts to find out.
var ErrFailed = errors.New("the database failed; free some disk space or check the disk, and start again")

// ErrCorrupt says that files of the database are damaged or missing, and which. From then on the store takes no more
// changes: what else is damaged is not known.
var ErrCorrupt = errors.New("the database is damaged; check the disk, then restore the data folder from a backup or start with an empty one")

// failure is why a store takes no more changes. It is safe for concurrent use.
type failure struct {
	log   *slog.Logger
	cause atomic.Pointer[error]
}

// set notes the first failure and reports whether it was err.
func (f *failure) set(err error) bool { return f.cause.CompareAndSwap(nil, &err) }

// why is the first failure, nil before it.
func (f *failure) why() error {
	if cause := f.cause.Load(); cause != nil {
		return *cause
	}
	return nil
}

// damaged notes damage and returns it as an error that wraps ErrCorrupt.
func (f *failure) damaged(what string) error {
	err := fmt.Errorf("%w: %s", ErrCorrupt, what)
	if f.set(err) {
		f.log.Error(err.Error())
	}
	return err
}

// corrupt wraps an error of the database in ErrCorrupt if damage is what it tells of.
func corrupt(err error) error {
	if errors.Is(err, ErrCorrupt) || !pebble.IsCorruptionError(err) && !missing(err) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrCorrupt, err)
}

// missing recognizes what pebble says on opening when a table has another size than it wrote, or is not there: it marks
// neither as damage.
func missing(err error) bool {
	return errors.Is(err, os.ErrNotExist) || strings.Contains(err.Error(), "object size mismatch")
}

// readError says that the database could not be read.
func readError(err error) error { return fmt.Errorf("read database: %w", corrupt(err)) }
