package store

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/lightswarm/lightswarm/wire"
)

// Options say where a Store is and what bounds it.
type Options struct {
	// Folder is the database's folder; it is created if it is missing.
	Folder string
	// Self is the node's own peer id.
	Self wire.PeerID
	// MaxBlockBytes bounds the sum of all blocks' bytes, pinned and unpinned.
	MaxBlockBytes int64
	// InMemory keeps everything in memory, gone after Close.
	InMemory bool
	// FileSystem is the operating system's if nil. Tests inject faults with it.
	FileSystem vfs.FS
	// Log receives what the database has to say. Optional.
	Log *slog.Logger
}

// separateBytes is the size from which a value is kept outside of the sorted tables.
const separateBytes = 8 << 10

// Store is an open database. Make one with Open.
type Store struct {
	db *pebble.DB
	bounds

	// mu orders changes: a change reads what it depends on and is applied while it is held. Nobody waits for the disk
	// while holding it.
	mu sync.Mutex
	// The state below follows from the database and is kept in memory because each change needs it. Guarded by mu.
	state
	// shown are the records that are durable. Guarded by mu.
	shown  records
	failed *failure
}

// bounds are what changes need to know that is set by Open and never change.
type bounds struct {
	self                  wire.PeerID
	maxBytes              int64
	maxOwn                uint64
	maxOthers, maxCursors int
}

// state is what changes with a transaction and is adopted when that is applied.
type state struct {
	blockBytes  int64
	nextOrder   uint64 // of blocks
	nextArrival uint64 // of other peers' announcements
	arrivals    int    // how many of those are kept
	cursors     int    // how many are kept
	nextDraw    uint64
	records
}

// records says which signed records there are that the node answers for: its own announcements, and releases. Others see
// none before it is durable. If a crash took back one that a member has already, the node would make another one in its
// place, and be taken for an old copy of itself.
type records struct {
	nextSequence uint64 // of own announcements
	nextVersion  uint64 // above the newest release, 0 if there is none
}

// Open opens or creates the database.
func Open(o Options) (*Store, error) {
	switch {
	case o.InMemory:
		o.FileSystem = vfs.NewMem()
	case o.FileSystem == nil:
		o.FileSystem = vfs.Default
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	options := &pebble.Options{
		Logger: databaseLog{o.Log},
		// Fixed at a version that this program's pebble and all later ones read.
		FormatMajorVersion: pebble.FormatValueSeparation,
	}
	// Every change looks up keys, most of which are not there. That reads the part of a table where they would be, which
	// is small only if policies and checkpoints, megabytes each, are kept elsewhere. Measured with 0.6 GB of blocks and
	// checkpoints through a store of 96 MiB: compactions write 1.1 GB instead of 2.5, and blocks are read three times as
	// fast, for a third more room on disk.
	options.Experimental.ValueSeparationPolicy = func() pebble.ValueSeparationPolicy {
		return pebble.ValueSeparationPolicy{
			Enabled: true, MinimumSize: separateBytes, MaxBlobReferenceDepth: 10, RewriteMinimumAge: time.Minute, TargetGarbageRatio: 0.2,
		}
	}
	failed := &failure{log: o.Log}
	options.FS = guard{o.FileSystem, failed.damaged}
	err := checkValues(o, options.Clone(), failed)
	var db *pebble.DB
	if err == nil {
		db, err = openDatabase(o, options, failed)
	}
	if err != nil {
		return nil, fmt.Errorf("open database %s: %w", o.Folder, corrupt(err))
	}
	s := &Store{db: db, failed: failed, bounds: bounds{o.Self, o.MaxBlockBytes, maxOwn, maxOthers, maxCursors}}
	if err := s.start(); err != nil {
		return nil, errors.Join(fmt.Errorf("open database %s: %w", o.Folder, err), db.Close())
	}
	return s, nil
}

// openDatabase opens pebble. failed is set when, then or later, something goes wrong that no caller is told of.
//
// Pebble tries again for ever what fails in the background. It also does so while it opens, and has no way to be told to
// stop: then the goroutine that opens is left behind, and closes the database if it is ever done.
func openDatabase(o Options, options *pebble.Options, failed *failure) (*pebble.DB, error) {
	broken := make(chan struct{}, 1)
	options.EventListener = listener(failed, broken)
	type result struct {
		db  *pebble.DB
		err error
	}
	opened := make(chan result, 1)
	go func() {
		db, err := pebble.Open(o.Folder, options)
		opened <- result{db, err}
	}()
	select {
	case r := <-opened:
		return r.db, r.err
	case <-broken:
		go func() {
			if r := <-opened; r.err == nil {
				_ = r.db.Close() // Nobody uses it.
			}
		}()
		return nil, failed.why()
	}
}

// retryPause is the least time between two tries at what fails in the background.
const retryPause = 100 * time.Millisecond

// listener sets failed by what pebble has to tell, and puts an element into broken, which has capacity 1, when work in the
// background failed. Without a listener, pebble ends the process or hangs when it meets damage.
//
// Pebble tries again without a pause, which keeps a processor busy for as long as the disk is full or damaged. It waits
// for its listener, though, and holds the lock of background work meanwhile, which no reader needs.
func listener(failed *failure, broken chan<- struct{}) *pebble.EventListener {
	return &pebble.EventListener{
		DataCorruption: func(i pebble.DataCorruptionInfo) {
			_ = failed.damaged(fmt.Sprint(i.Details)) // Whoever reads it is told by pebble.
		},
		BackgroundError: func(err error) {
			if failed.set(fmt.Errorf("%w: %w", ErrFailed, err)) {
				failed.log.Warn("the database failed in the background", "error", err)
			}
			select {
			case broken <- struct{}{}:
			default: // Told already.
			}
			time.Sleep(retryPause) //nolint:forbidigo // Pebble gives its listener nothing to wait for.
		},
	}
}

// start checks the schema and reads the state.
func (s *Store) start() error {
	if err := s.checkSchema(); err != nil {
		return err
	}
	for _, load := range []func() error{s.loadBlocks, s.loadReleases, s.loadAnnouncements, s.loadDraws} {
		if err := load(); err != nil {
			return err
		}
	}
	s.show(s.records) // What opening found in the log, it has moved to tables.
	return nil
}

// Close closes the database. No method may be running.
func (s *Store) Close() error {
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("close database: %w", err)
	}
	return nil
}

// get returns a copy of a value; ok is false if there is none.
func get(r pebble.Reader, k []byte) (value []byte, ok bool, err error) {
	v, closer, err := r.Get(k)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, readError(err)
	}
	value = append([]byte{}, v...)
	if err := closer.Close(); err != nil { // A value that could not be read is an error here.
		return nil, false, readError(err)
	}
	return value, true, nil
}

// has says whether a key exists.
func has(r pebble.Reader, k []byte) (there bool, err error) {
	_, closer, err := r.Get(k)
	if errors.Is(err, pebble.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, readError(err)
	}
	if err := closer.Close(); err != nil {
		return false, readError(err)
	}
	return true, nil
}

// scan calls visit for the keys from lower to before upper, in order, until it returns false or an error. The slices
// are valid during the call.
func scan(r pebble.Reader, lower, upper []byte, visit func(k, v []byte) (bool, error)) (err error) {
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return readError(err)
	}
	for ok := it.First(); ok; ok = it.Next() {
		v, err := it.ValueAndErr()
		if err != nil {
			return errors.Join(readError(err), it.Close())
		}
		more, err := visit(it.Key(), v)
		if err != nil {
			return errors.Join(err, it.Close())
		}
		if !more {
			break
		}
	}
	if err := it.Close(); err != nil {
		return readError(err)
	}
	return nil
}

// scanPrefix is scan over all keys with a prefix.
func scanPrefix(r pebble.Reader, prefix []byte, visit func(k, v []byte) (bool, error)) error {
	return scan(r, prefix, after(prefix), visit)
}

// last returns the greatest key with a prefix and its value.
func last(r pebble.Reader, prefix []byte) (k, v []byte, err error) {
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: after(prefix)})
	if err != nil {
		return nil, nil, readError(err)
	}
	if it.Last() {
		value, valueErr := it.ValueAndErr()
		k, v, err = append([]byte{}, it.Key()...), append([]byte{}, value...), valueErr
	}
	if err := errors.Join(err, it.Close()); err != nil {
		return nil, nil, readError(err)
	}
	return k, v, nil
}

// databaseLog passes the database's messages on. What it calls fatal, such as a log that cannot be written, leaves
// no safe way to continue: a change that was under way fails, and elsewhere the process ends.
type databaseLog struct{ log *slog.Logger }

// fatalError is what the database called fatal.
type fatalError string

func (e fatalError) Error() string { return string(e) }

func (l databaseLog) Infof(format string, args ...any) { l.log.Debug(fmt.Sprintf(format, args...)) }

func (l databaseLog) Errorf(format string, args ...any) { l.log.Warn(fmt.Sprintf(format, args...)) }

func (l databaseLog) Fatalf(format string, args ...any) {
	panic(fatalError(fmt.Sprintf(format, args...)))
}
