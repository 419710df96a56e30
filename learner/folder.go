package learner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/lightswarm/lightswarm/wire"
)

// Folder is a Store in a folder of the file system:
//
//	checkpoint            the newest checkpoint, and the records of consumed bundles that are still needed
//	bundles-<number>.log  accepted bundles, appended in batches with one sync each; the newest is being written
//
// A checkpoint is written to a temporary file, synced and renamed, so that the rename is the instant at which its
// bundles become consumed. A batch is atomic because its last frame says so: a log whose end lacks that is cut back to
// the batch before. Logs without unconsumed bundles are deleted. One process uses a folder at a time.
type Folder struct {
	dir string

	mu      sync.Mutex
	broken  error               // guarded by mu; the failure after which nothing is accepted
	logs    []*bundleLog        // guarded by mu; oldest first, the last is open for writing
	entries map[wire.CID]*entry // guarded by mu
	restart *Checkpoint         // guarded by mu; what Load returns
}

// entry is a record and where its bundle lies.
type entry struct {
	record Record
	log    *bundleLog // nil when the record comes from the checkpoint file
	offset int64
	size   int
}

const (
	checkpointName = "checkpoint"
	// logBytes is the size from which on a log is closed and another begun.
	logBytes = 16 << 20
)

// ErrCorrupt says that a folder holds bytes that no crash of this program can leave behind.
var ErrCorrupt = errors.New("corrupt learner folder")

var _ Store = (*Folder)(nil)

// OpenFolder opens the store in dir, which it creates when it does not exist. The caller closes it.
func OpenFolder(dir string) (*Folder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("opening learner folder: %w", err)
	}
	f := &Folder{dir: dir, entries: make(map[wire.CID]*entry)}
	if err := f.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("opening learner folder %s: %w", dir, err), f.Close())
	}
	return f, nil
}

func (f *Folder) open() error {
	checkpoint, consumed, err := readCheckpointFile(filepath.Join(f.dir, checkpointName))
	if err != nil {
		return err
	}
	f.restart = checkpoint
	for _, r := range consumed {
		f.entries[r.CID] = &entry{record: r}
	}
	names, err := logNames(f.dir)
	if err != nil {
		return err
	}
	for i, name := range names {
		log, found, err := openLog(filepath.Join(f.dir, name), i == len(names)-1)
		if err != nil {
			return err
		}
		f.logs = append(f.logs, log)
		for _, e := range found {
			f.add(e)
		}
	}
	return f.prune()
}

// add records what a log holds. A known bundle is a consumed one whose log was not deleted yet.
func (f *Folder) add(e *entry) {
	if known, ok := f.entries[e.record.CID]; ok {
		known.log = e.log
		return
	}
	f.entries[e.record.CID] = e
	e.log.live++
}

// Load implements Store.
func (f *Folder) Load(ctx context.Context) (Recovery, error) {
	if err := ctx.Err(); err != nil {
		return Recovery{}, fmt.Errorf("loading: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	r := Recovery{Checkpoint: f.restart}
	f.restart = nil
	for _, e := range f.entries {
		r.Records = append(r.Records, e.record)
	}
	slices.SortFunc(r.Records, func(a, b Record) int { return cmp.Compare(a.Order, b.Order) })
	return r, nil
}

// Accept implements Store.
func (f *Folder) Accept(ctx context.Context, batch []Accepted) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("accepting %d bundles: %w", len(batch), err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken != nil {
		return fmt.Errorf("accepting %d bundles after an earlier failure: %w", len(batch), f.broken)
	}
	fresh := make([]Accepted, 0, len(batch))
	seen := make(map[wire.CID]bool)
	for _, a := range batch {
		if _, ok := f.entries[a.Record.CID]; !ok && !seen[a.Record.CID] {
			seen[a.Record.CID] = true
			fresh = append(fresh, a)
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	if err := f.append(fresh); err != nil {
		f.broken = err
		return fmt.Errorf("accepting %d bundles: %w", len(fresh), err)
	}
	return nil
}

func (f *Folder) append(fresh []Accepted) error {
	log, err := f.writable()
	if err != nil {
		return err
	}
	entries, err := log.append(fresh)
	if err != nil {
		return err
	}
	for _, e := range entries {
		f.add(e)
	}
	return nil
}

// writable returns the newest log, or a new one when that is full.
func (f *Folder) writable() (*bundleLog, error) {
	number := 0
	if n := len(f.logs); n > 0 {
		if last := f.logs[n-1]; last.end < logBytes {
			return last, nil
		}
		number = f.logs[n-1].number + 1
	}
	log, err := createLog(f.dir, number)
	if err != nil {
		return nil, err
	}
	f.logs = append(f.logs, log)
	return log, nil
}

// Bundle implements Store.
func (f *Folder) Bundle(_ context.Context, cid wire.CID) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	e, ok := f.entries[cid]
	if !ok || e.record.Consumed {
		return nil, fmt.Errorf("bundle %s: %w", cid, ErrNotStored)
	}
	b := make([]byte, e.size)
	if _, err := e.log.file.ReadAt(b, e.offset); err != nil {
		return nil, fmt.Errorf("bundle %s: %w", cid, err)
	}
	if err := cid.Verify(b); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return b, nil
}

// Commit implements Store.
func (f *Folder) Commit(ctx context.Context, c Checkpoint) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("committing version %d: %w", c.Version, err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken != nil {
		return fmt.Errorf("committing version %d after an earlier failure: %w", c.Version, f.broken)
	}
	err := writeCheckpointFile(filepath.Join(f.dir, checkpointName), c, f.marks(c))
	if err == nil {
		f.consume(c)
		err = f.prune()
	}
	if err != nil {
		f.broken = err
		return fmt.Errorf("committing version %d: %w", c.Version, err)
	}
	return nil
}

// marks returns the consumed records that are still needed once c is committed.
func (f *Folder) marks(c Checkpoint) []Record {
	now := make(map[wire.CID]bool, len(c.Consumed))
	for _, cid := range c.Consumed {
		now[cid] = true
	}
	var marks []Record
	for cid, e := range f.entries {
		// A log that is not deleted yet would bring back a record that nothing marks.
		if needed := e.record.Version >= c.Oldest || e.log != nil; needed && (e.record.Consumed || now[cid]) {
			r := e.record
			r.Consumed = true
			marks = append(marks, r)
		}
	}
	slices.SortFunc(marks, func(a, b Record) int { return cmp.Compare(a.Order, b.Order) })
	return marks
}

// consume marks what c consumed and forgets what nobody needs.
func (f *Folder) consume(c Checkpoint) {
	for _, cid := range c.Consumed {
		if e, ok := f.entries[cid]; ok && !e.record.Consumed {
			e.record.Consumed = true
			if e.log != nil {
				e.log.live--
			}
		}
	}
	for cid, e := range f.entries {
		if e.record.Consumed && e.record.Version < c.Oldest && e.log == nil {
			delete(f.entries, cid)
		}
	}
}

// prune deletes the logs, but for the newest, that hold no unconsumed bundle.
func (f *Folder) prune() error {
	var kept []*bundleLog
	for i, log := range f.logs {
		if i == len(f.logs)-1 || log.live > 0 {
			kept = append(kept, log)
			continue
		}
		for _, e := range f.entries {
			if e.log == log {
				e.log = nil
			}
		}
		if err := errors.Join(log.file.Close(), os.Remove(log.file.Name())); err != nil {
			return err
		}
	}
	f.logs = kept
	return nil
}

// Close ends the use of the folder. What was accepted and committed is durable already.
func (f *Folder) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var err error
	for _, log := range f.logs {
		err = errors.Join(err, log.file.Close())
	}
	f.logs, f.broken = nil, os.ErrClosed
	return err
}
