package store

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

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
