package store

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/lightswarm/lightswarm/p2p/block"
	"github.com/lightswarm/lightswarm/wire"
)

// A damaged database is an error for whoever reads what is damaged, not the end of the process.
func TestDamage(t *testing.T) {
	fs := vfs.NewMem()
	s := openOn(t, fs, 1<<20)
	data := bytes.Repeat([]byte("block"), separateBytes/4)
	cid := wire.SumCID(data)
	must(t, s.Put(cid, data), s.Close())
	must(t, openOn(t, fs, 1<<20).Close()) // Moves everything from the log to tables, and the block to a file beside them.

	damage(t, fs, ".blob")
	s = openOn(t, fs, 1<<20)
	if got, err := s.Get(cid); err == nil || errors.Is(err, block.ErrNotFound) {
		t.Errorf("Get returned %d bytes and %v, want that they are damaged", len(got), err)
	}
	must(t, s.Close())

	damage(t, fs, ".sst")
	if s, err := Open(Options{Folder: "db", MaxBlockBytes: 1 << 20, FileSystem: fs}); err == nil {
		must(t, s.Close())
		t.Error("a database with damaged tables was opened")
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

// damage overwrites some bytes in the middle of every file with a suffix.
func damage(t *testing.T, fs vfs.FS, suffix string) {
	t.Helper()
	names, err := fs.List("db")
	must(t, err)
	damaged := 0
	for _, name := range names {
		if !strings.HasSuffix(name, suffix) {
			continue
		}
		path := fs.PathJoin("db", name)
		f, err := fs.Open(path)
		must(t, err)
		data, err := io.ReadAll(f)
		must(t, errors.Join(err, f.Close()))
		copy(data[len(data)/2:], "damaged")
		g, err := fs.Create(path, vfs.WriteCategoryUnspecified)
		must(t, err)
		_, err = g.Write(data)
		must(t, errors.Join(err, g.Sync(), g.Close()))
		damaged++
	}
	if damaged == 0 {
		t.Fatalf("no %s files among %q", suffix, names)
	}
}
