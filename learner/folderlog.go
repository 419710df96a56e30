package learner

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/lightswarm/lightswarm/durable"
	"github.com/lightswarm/lightswarm/wire"
)

// bundleLog is one file of accepted bundles. It is a sequence of frames, each
//
//	length uint32 | crc32c uint32 | payload: last byte, record length uint32, record, bundle
//
// in big-endian, where length and crc32c are of the payload and last is 1 in the final frame of a batch, else 0.
type bundleLog struct {
	file   *os.File
	number int
	// end is the offset behind the last whole batch.
	end int64
	// live is the number of unconsumed bundles.
	live int
}

const (
	frameHeader = 8
	// maxFrame bounds a frame's payload: a bundle, its record and a little.
	maxFrame = wire.MaxBundleBytes + 4096
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// logNames lists a folder's logs, oldest first.
func logNames(dir string) ([]string, error) {
	files, err := os.ReadDir(dir) // sorted by name
	if err != nil {
		return nil, err
	}
	var names []string
	for _, f := range files {
		if strings.HasPrefix(f.Name(), "bundles-") && strings.HasSuffix(f.Name(), ".log") {
			names = append(names, f.Name())
		}
	}
	return names, nil
}

// createLog starts log number of a folder and makes its name durable.
func createLog(dir string, number int) (*bundleLog, error) {
	name := filepath.Join(dir, fmt.Sprintf("bundles-%08d.log", number))
	file, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err := durable.SyncFolder(dir); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &bundleLog{file: file, number: number}, nil
}

// openLog reads a log. Only the newest may end in an unfinished batch, which is cut off.
func openLog(name string, newest bool) (*bundleLog, []*entry, error) {
	log := &bundleLog{}
	if _, err := fmt.Sscanf(filepath.Base(name), "bundles-%d.log", &log.number); err != nil {
		return nil, nil, fmt.Errorf("%w: file name %s: %w", ErrCorrupt, name, err)
	}
	var err error
	if log.file, err = os.OpenFile(name, os.O_RDWR, 0); err != nil {
		return nil, nil, err
	}
	entries, err := log.scan()
	if err != nil {
		return nil, nil, errors.Join(err, log.file.Close())
	}
	info, err := log.file.Stat()
	if err == nil && info.Size() > log.end {
		if newest {
			err = errors.Join(log.file.Truncate(log.end), log.file.Sync())
		} else {
			err = fmt.Errorf("%w: %s is unreadable from byte %d of %d on", ErrCorrupt, name, log.end, info.Size())
		}
	}
	if err != nil {
		return nil, nil, errors.Join(err, log.file.Close())
	}
	return log, entries, nil
}

// scan reads whole batches from the start and leaves end behind the last.
func (l *bundleLog) scan() ([]*entry, error) {
	var whole, batch []*entry
	for at := int64(0); ; {
		payload, err := l.frame(at)
		if errors.Is(err, errFrame) {
			return whole, nil
		}
		if err != nil {
			return nil, err
		}
		size := int64(binary.BigEndian.Uint32(payload[1:]))
		record, err := DecodeRecord(payload[5 : 5+size])
		if err != nil {
			return nil, fmt.Errorf("%w: %s at byte %d: %w", ErrCorrupt, l.file.Name(), at, err)
		}
		batch = append(batch, &entry{
			record: record,
			log:    l,
			offset: at + frameHeader + 5 + size,
			size:   len(payload) - 5 - int(size),
		})
		at += frameHeader + int64(len(payload))
		if payload[0] == 1 {
			whole, batch = append(whole, batch...), nil
			l.end = at
		}
	}
}

// errFrame says that no whole frame begins at an offset.
var errFrame = errors.New("no frame")

// frame reads the payload of the frame at an offset.
func (l *bundleLog) frame(at int64) ([]byte, error) {
	var header [frameHeader]byte
	if err := readAt(l.file, header[:], at); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(header[:])
	if size < 5 || size > maxFrame {
		return nil, errFrame
	}
	payload := make([]byte, size)
	if err := readAt(l.file, payload, at+frameHeader); err != nil {
		return nil, err
	}
	if crc32.Checksum(payload, castagnoli) != binary.BigEndian.Uint32(header[4:]) ||
		binary.BigEndian.Uint32(payload[1:]) > size-5 {
		return nil, errFrame
	}
	return payload, nil
}

// readAt fills b or returns errFrame where the file ends first.
func readAt(file *os.File, b []byte, at int64) error {
	_, err := file.ReadAt(b, at)
	if errors.Is(err, io.EOF) {
		return errFrame
	}
	return err
}

// append writes one batch and syncs it.
func (l *bundleLog) append(batch []Accepted) ([]*entry, error) {
	var buffer []byte
	entries := make([]*entry, 0, len(batch))
	for i, a := range batch {
		record, err := a.Record.Encode()
		if err != nil {
			return nil, err
		}
		size := 5 + len(record) + len(a.Bundle)
		if size > maxFrame {
			return nil, fmt.Errorf("bundle %s has %d bytes: %w", a.Record.CID, len(a.Bundle), wire.ErrTooLarge)
		}
		start := len(buffer)
		buffer = append(buffer, make([]byte, frameHeader)...)
		last := byte(0)
		if i == len(batch)-1 {
			last = 1
		}
		buffer = append(buffer, last)
		buffer = binary.BigEndian.AppendUint32(buffer, uint32(len(record)))
		buffer = append(buffer, record...)
		entries = append(entries, &entry{
			record: a.Record,
			log:    l,
			offset: l.end + int64(len(buffer)),
			size:   len(a.Bundle),
		})
		buffer = append(buffer, a.Bundle...)
		binary.BigEndian.PutUint32(buffer[start:], uint32(size))
		binary.BigEndian.PutUint32(buffer[start+4:], crc32.Checksum(buffer[start+frameHeader:], castagnoli))
	}
	if _, err := l.file.WriteAt(buffer, l.end); err != nil {
		return nil, err
	}
	if err := l.file.Sync(); err != nil {
		return nil, err
	}
	l.end += int64(len(buffer))
	return entries, nil
}
