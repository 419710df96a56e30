package store

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/lightswarm/lightswarm/virtualtime"
	"github.com/lightswarm/lightswarm/wire"
)

// A damaged database is an error for whoever reads what is damaged, and soon: not the end of the process, and no search
// for the cause.
func TestDamage(t *testing.T) {
	flip := func(at func(size int) int) func([]byte) []byte {
		return func(data []byte) []byte {
			data[at(len(data))] ^= 0x55
			return data
		}
	}
	for name, c := range map[string]struct {
		suffix string
		change func([]byte) []byte // nil removes the file
		closed bool                // the database does not open
	}{
		"a value's start":   {".blob", flip(func(int) int { return 0 }), false},
		"a value's middle":  {".blob", flip(func(n int) int { return n / 2 }), false},
		"a value's index":   {".blob", flip(func(n int) int { return n - footerBytes - 1 }), false},
		"a value's footer":  {".blob", flip(func(n int) int { return n - footerBytes }), false},
		"a value's mark":    {".blob", flip(func(n int) int { return n - 1 }), false},
		"an empty value":    {".blob", func([]byte) []byte { return nil }, true},
		"a cut value":       {".blob", func(b []byte) []byte { return b[:len(b)/2] }, true},
		"a value less one":  {".blob", func(b []byte) []byte { return b[:len(b)-1] }, true},
		"no value":          {".blob", nil, true},
		"a table's start":   {".sst", flip(func(int) int { return 0 }), true},
		"a table's middle":  {".sst", flip(func(n int) int { return n / 2 }), true},
		"a table's end":     {".sst", flip(func(n int) int { return n - 1 }), true},
		"a cut table":       {".sst", func(b []byte) []byte { return b[:len(b)/2] }, true},
		"no table":          {".sst", nil, true},
		"a manifest's head": {"MANIFEST", flip(func(int) int { return 10 }), true},
	} {
		t.Run(name, func(t *testing.T) {
			disk := vfs.NewMem()
			s := openOn(t, disk, 1<<24)
			data := make([]byte, 1<<20) // pebble would look for a flipped bit in it for minutes.
			rand.NewChaCha8([32]byte{}).Read(data)
			cid := wire.SumCID(data)
			must(t, s.Put(cid, data), s.Close())
			must(t, openOn(t, disk, 1<<24).Close()) // Moves everything from the log to tables, and the block to a file beside them.
			change(t, disk, c.suffix, c.change)

			s, err := Open(Options{Folder: "db", Self: self, MaxBlockBytes: 1 << 24, FileSystem: disk})
			if c.closed {
				if !errors.Is(err, ErrCorrupt) || c.suffix == ".blob" && !strings.Contains(err.Error(), ".blob") {
					t.Errorf("Open returned %v, want ErrCorrupt and which file", err)
				}
				return
			}
			must(t, err)
			if got, err := s.Get(cid); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), ".blob") {
				t.Errorf("Get returned %d bytes and %v, want ErrCorrupt and which file", len(got), err)
			}
			if err := s.PutRelease(0, []byte("release")); !errors.Is(err, ErrCorrupt) {
				t.Errorf("a change after that returned %v, want ErrCorrupt", err)
			}
			must(t, s.Close())
		})
	}
}

// Damage that the database meets in the background, while it moves values together, ends nothing.
func TestDamageInBackground(t *testing.T) {
	for name, c := range map[string]struct {
		change func([]byte) []byte // nil removes the file
		opened bool                // it happens while the database is open
	}{
		"a flipped bit": {func(b []byte) []byte { b[len(b)-1] ^= 1; return b }, false},
		"cut short":     {func(b []byte) []byte { return b[:len(b)-1] }, true},
		"gone":          {nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			disk := vfs.NewMem()
			s := openOn(t, disk, 1<<24)
			put := func(i int) error {
				data := bytes.Repeat([]byte{byte(i)}, 2*separateBytes)
				return errors.Join(s.Put(wire.SumCID(data), data), s.db.Flush(), s.db.Compact(t.Context(), []byte{0}, []byte{0xff}, false))
			}
			must(t, put(0), s.Close())
			if !c.opened {
				change(t, disk, ".blob", c.change)
			}
			s = openOn(t, disk, 1<<24)
			if c.opened {
				change(t, disk, ".blob", c.change)
			}
			var err error
			for i := 1; i < 64 && err == nil; i++ { // Values in many files are moved into one sooner or later.
				err = put(i)
			}
			if !errors.Is(err, ErrCorrupt) {
				t.Errorf("the compaction returned %v, want ErrCorrupt", err)
			}
			if err := s.PutRelease(0, []byte("release")); !errors.Is(err, ErrCorrupt) {
				t.Errorf("a change after that returned %v, want ErrCorrupt", err)
			}
			must(t, s.Close())
		})
	}
}

// A disk that is full while the database opens and moves its log to tables is an error, not a wait without an end.
func TestOpenOnFullDisk(t *testing.T) {
	var full atomic.Bool
	disk := vfs.NewMem()
	fs := errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if full.Load() && op.Kind == errorfs.OpFileWrite && strings.HasSuffix(op.Path, ".sst") {
			return syscall.ENOSPC
		}
		return nil
	}))
	s := openOn(t, fs, 1<<20)
	must(t, s.PutRelease(0, []byte("release")), s.Close())
	full.Store(true)
	s, err := Open(Options{Folder: "db", Self: self, FileSystem: fs, MaxBlockBytes: 1 << 20})
	full.Store(false)
	if !errors.Is(err, ErrFailed) || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Open returned %v and %v, want ErrFailed that wraps ENOSPC", s, err)
	}
}

// Work in the background that fails is told to whoever opens, also if the damage itself was noted before, and is not tried
// again at once.
func TestBackgroundErrors(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		failed, broken := &failure{log: slog.New(slog.DiscardHandler)}, make(chan struct{}, 1)
		l := listener(failed, broken)
		damage := failed.damaged("a file")
		begin := time.Now()
		l.BackgroundError(damage)
		l.BackgroundError(damage)
		if got := time.Since(begin); got != 2*retryPause {
			t.Errorf("two tries took %v, want %v", got, 2*retryPause)
		}
		if len(broken) != 1 || !errors.Is(failed.why(), damage) {
			t.Errorf("told %d times of %v, want once of %v", len(broken), failed.why(), damage)
		}
	})
}

// change changes every file with some part of a name; a nil function removes it.
func change(t *testing.T, disk vfs.FS, part string, with func([]byte) []byte) {
	t.Helper()
	names, err := disk.List("db")
	must(t, err)
	changed := 0
	for _, name := range names {
		if !strings.Contains(name, part) || strings.HasPrefix(name, "marker") {
			continue
		}
		changed++
		path := disk.PathJoin("db", name)
		if with == nil {
			must(t, disk.Remove(path))
			continue
		}
		f, err := disk.Open(path)
		must(t, err)
		data, err := io.ReadAll(f)
		must(t, errors.Join(err, f.Close()))
		g, err := disk.Create(path, vfs.WriteCategoryUnspecified)
		must(t, err)
		_, err = g.Write(with(data))
		must(t, errors.Join(err, g.Sync(), g.Close()))
	}
	if changed == 0 {
		t.Fatalf("no %s files among %q", part, names)
	}
}
