package tensorboard

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"time"
)

// File is an event file under construction. It is not safe for concurrent use.
type File struct {
	file *os.File
	// end is the offset behind the last whole record.
	end int64
}

// Create starts an event file in a folder that exists. Files that are started later come later in the order of names.
func Create(folder string, now time.Time) (*File, error) {
	file, err := os.OpenFile(filepath.Join(folder, fileName(now, os.Getpid())), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, fmt.Errorf("start an event file: %w", err)
	}
	f := &File{file: file}
	if err := f.append(first(now)); err != nil {
		_ = file.Close() // The error says what matters.
		return nil, err
	}
	return f, nil
}

// fileName is that of a file that a process starts at an instant.
func fileName(now time.Time, process int) string {
	return fmt.Sprintf("events.out.tfevents.%010d.%09d.lightswarm.%d", now.Unix(), now.Nanosecond(), process)
}

// Write appends an event. After an error the file is as it was before.
func (f *File) Write(e Event) error { return f.append(e.encode()) }

func (f *File) append(data []byte) error {
	framed := record(data)
	if _, err := f.file.WriteAt(framed, f.end); err != nil {
		_ = f.file.Truncate(f.end) // What cannot be cut off is overwritten by the next record.
		return fmt.Errorf("write an event file: %w", err)
	}
	f.end += int64(len(framed))
	return nil
}

// Close ends the file.
func (f *File) Close() error { return f.file.Close() }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// masked is the checksum that records have.
func masked(data []byte) uint32 {
	c := crc32.Checksum(data, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}

// record frames an event's message.
func record(data []byte) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(data)))
	b = binary.LittleEndian.AppendUint32(b, masked(b))
	b = append(b, data...)
	return binary.LittleEndian.AppendUint32(b, masked(data))
}
