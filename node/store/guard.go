package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// checkValues finds value files that are missing or have another size than was written. Of tables pebble sees that when
// it opens. Of a value file that is missing, it panics when it first reads from it, also in the background, where nobody
// can recover; so it is asked which there must be before it may work: of a database that is only read, nothing changes.
// What else is wrong, opening tells.
func checkValues(o Options, options *pebble.Options, failed *failure) error {
	options.ReadOnly = true
	db, err := pebble.Open(o.Folder, options)
	if err != nil {
		return nil //nolint:nilerr // There is no database yet, or opening it fails too.
	}
	for file := range db.DebugCurrentVersion().BlobFiles.All() {
		name := o.FileSystem.PathJoin(o.Folder, file.Physical.FileNum.String()+valueSuffix)
		info, statErr := o.FileSystem.Stat(name)
		switch {
		case errors.Is(statErr, os.ErrNotExist):
			err = failed.damaged(name + " is missing")
		case statErr != nil:
			err = statErr
		case info.Size() != int64(file.Physical.Size):
			err = failed.damaged(fmt.Sprintf("%s has %d bytes, not %d", name, info.Size(), file.Physical.Size))
		}
		if err != nil {
			break
		}
	}
	return errors.Join(err, db.Close())
}

// guard is a file system that finds damage in the database's value files before pebble does. Of a value file that
// vanished, was cut short or has a damaged end, pebble 2 panics, also in the background, where nobody can recover. Of one
// with a damaged block it looks for the flipped bit, which takes minutes for a value of some megabytes. With guard both
// are errors of the disk, which pebble passes on.
type guard struct {
	vfs.FS
	// report is told of what is damaged and returns the error for whoever wanted to read it.
	report func(what string) error
}

// Unwrap implements vfs.FS.
func (g guard) Unwrap() vfs.FS { return g.FS }

// Open implements vfs.FS.
func (g guard) Open(name string, options ...vfs.OpenOption) (vfs.File, error) {
	f, err := g.FS.Open(name, options...)
	if !strings.HasSuffix(name, valueSuffix) {
		return f, err
	}
	if errors.Is(err, os.ErrNotExist) {
		return nil, g.report(name + " is missing")
	}
	if err != nil {
		return nil, err
	}
	footer, why, err := checkEnd(f)
	if err == nil && why != "" {
		err = g.report(name + " " + why)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return guardedFile{f, name, footer, g.report}, nil
}

// The layout of pebble's value files: blocks, an index block and a footer. Each block ends with one byte that names its
// compression and the checksum of all before. The footer begins with the checksum of its rest,
// ends with a mark, and has in between: index offset u64, index length u64, checksum kind u8, format u8, file number u64.
// The database's format version, which Open sets, keeps it so.
//
// That every read but the footer's is of one whole block is no part of the format: it is how pebble 2 reads. A pebble that
// read parts of blocks, or several at once, would make sound files look damaged. To be checked again with each upgrade.
const (
	valueSuffix    = ".blob"
	valueMark      = "\xf0\x9f\xaa\xb3\xf0\x9f\xa6\x80"
	footerBytes    = 38
	checksumBytes  = 4
	checksumKindAt = 20
	checksumCRC32C = 1
)

// checkEnd returns where a value file's footer begins and says what is wrong with it, "" for nothing.
func checkEnd(f vfs.File) (at int64, why string, err error) {
	info, err := f.Stat()
	if err != nil {
		return 0, "", err
	}
	at = info.Size() - footerBytes
	if at < 0 {
		return 0, fmt.Sprintf("has only %d bytes", info.Size()), nil
	}
	footer := make([]byte, footerBytes)
	if _, err := f.ReadAt(footer, at); err != nil {
		return 0, "", err
	}
	if binary.LittleEndian.Uint32(footer) != checksum(footer[checksumBytes:]) || !strings.HasSuffix(string(footer), valueMark) {
		return 0, "is cut short or damaged at its end", nil
	}
	if footer[checksumKindAt] != checksumCRC32C {
		return 0, "has checksums of an unknown kind", nil
	}
	return at, "", nil
}

// guardedFile is a value file whose blocks are checked as they are read.
type guardedFile struct {
	vfs.File
	name   string
	footer int64 // where it begins
	report func(what string) error
}

// ReadAt implements io.ReaderAt.
func (f guardedFile) ReadAt(p []byte, offset int64) (int, error) {
	n, err := f.File.ReadAt(p, offset)
	end := len(p) - checksumBytes
	if err != nil || offset == f.footer || end < 0 {
		return n, err
	}
	if binary.LittleEndian.Uint32(p[end:]) != checksum(p[:end]) {
		return n, f.report(fmt.Sprintf("%s is damaged between its bytes %d and %d", f.name, offset, offset+int64(len(p))))
	}
	return n, nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum is pebble's: a CRC-32C, rotated and shifted so that checksums of data that has checksums are no special case.
func checksum(b []byte) uint32 {
	c := crc32.Checksum(b, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}
