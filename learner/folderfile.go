package learner

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"

	"github.com/lightswarm/lightswarm/durable"
)

// The checkpoint file is a sequence of sections, each
//
//	length uint64 | crc32c uint32 | payload
//
// in big-endian: the encoded Checkpoint first, then one encoded Record for each consumed bundle.
const sectionHeader = 12

// writeCheckpointFile replaces the file in one step.
func writeCheckpointFile(name string, c Checkpoint, consumed []Record) error {
	encoded, err := c.Encode()
	if err != nil {
		return err
	}
	buffer := appendSection(nil, encoded)
	for _, r := range consumed {
		encoded, err := r.Encode()
		if err != nil {
			return err
		}
		buffer = appendSection(buffer, encoded)
	}
	return durable.WriteFile(name, buffer, 0o600)
}

func appendSection(buffer, payload []byte) []byte {
	buffer = binary.BigEndian.AppendUint64(buffer, uint64(len(payload)))
	buffer = binary.BigEndian.AppendUint32(buffer, crc32.Checksum(payload, castagnoli))
	return append(buffer, payload...)
}

// readCheckpointFile returns nil when there is no checkpoint yet.
func readCheckpointFile(name string) (*Checkpoint, []Record, error) {
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	payload, rest, err := cutSection(data)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", name, err)
	}
	c, err := DecodeCheckpoint(payload)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %s: %w", ErrCorrupt, name, err)
	}
	var consumed []Record
	for len(rest) > 0 {
		if payload, rest, err = cutSection(rest); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", name, err)
		}
		r, err := DecodeRecord(payload)
		if err != nil {
			return nil, nil, fmt.Errorf("%w: %s: %w", ErrCorrupt, name, err)
		}
		consumed = append(consumed, r)
	}
	return &c, consumed, nil
}

func cutSection(data []byte) (payload, rest []byte, err error) {
	if len(data) < sectionHeader {
		return nil, nil, fmt.Errorf("%w: the file ends inside a section", ErrCorrupt)
	}
	size, sum, data := binary.BigEndian.Uint64(data), binary.BigEndian.Uint32(data[8:]), data[sectionHeader:]
	if size > uint64(len(data)) {
		return nil, nil, fmt.Errorf("%w: the file ends inside a section", ErrCorrupt)
	}
	if crc32.Checksum(data[:size], castagnoli) != sum {
		return nil, nil, fmt.Errorf("%w: a checksum does not match", ErrCorrupt)
	}
	return data[:size], data[size:], nil
}
