package stream

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// ErrTooLarge says that a frame's length is above the reader's limit. The stream cannot be read on.
var ErrTooLarge = errors.New("frame is larger than its limit")

// ReadFrame reads one frame of at most limit bytes. It returns io.EOF when the stream ends where a frame would begin, and
// io.ErrUnexpectedEOF when it ends inside one. The varint may have at most as many bytes as the limit needs, so a
// length has few spellings and none is read for long.
func ReadFrame(r *bufio.Reader, limit int) ([]byte, error) {
	n, err := readLength(r, limit)
	if err != nil {
		return nil, err
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r, b); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return b, nil
}

// readLength reads a varint that is at most limit.
func readLength(r *bufio.Reader, limit int) (int, error) {
	var n uint64
	for shift := 0; ; shift += 7 {
		c, err := r.ReadByte()
		if err != nil {
			if err == io.EOF && shift > 0 {
				err = io.ErrUnexpectedEOF
			}
			return 0, err
		}
		n |= uint64(c&0x7f) << shift
		if n > uint64(limit) || shift > 28 {
			return 0, fmt.Errorf("%w of %d bytes", ErrTooLarge, limit)
		}
		if c < 0x80 {
			return int(n), nil
		}
	}
}

// AppendFrame appends message as a frame to b.
func AppendFrame(b, message []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(message)))
	return append(b, message...)
}

// WriteFrame writes message as one frame. A writer that buffers must be flushed by the caller.
func WriteFrame(w io.Writer, message []byte) error {
	_, err := w.Write(AppendFrame(make([]byte, 0, len(message)+binary.MaxVarintLen32), message))
	return err
}
