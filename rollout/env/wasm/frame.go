package wasm

import (
	"encoding/binary"
	"fmt"
	"io"
)

// kind is what a frame between the node and the child says.
type kind uint8

const (
	// To the child.
	frameSetup   kind = iota + 1 // a setup in JSON
	frameModule                  // the module
	frameOpen                    // begin an episode: the seed of its random bytes
	frameRequest                 // a line for the episode's module
	frameClose                   // end an episode
	// From the child.
	frameReady  // the module is compiled
	frameAnswer // a usage, and the module's line
	frameFailed // a Failure in JSON; of no episode: the module cannot be run
	frameEnded  // an episode's instance is gone
)

// A frame is a kind (1 byte), an episode (4 bytes), a length (4 bytes) and that many bytes; numbers are big-endian.
const frameHeader = 9

type frame struct {
	kind    kind
	episode uint32
	body    []byte
}

func writeFrame(w io.Writer, f frame) error {
	b := make([]byte, frameHeader, frameHeader+len(f.body))
	b[0] = byte(f.kind)
	binary.BigEndian.PutUint32(b[1:], f.episode)
	binary.BigEndian.PutUint32(b[5:], uint32(len(f.body)))
	_, err := w.Write(append(b, f.body...))
	return err
}

// readFrame reads a frame with a body of at most limit bytes. At the end of r it returns io.EOF.
func readFrame(r io.Reader, limit int) (frame, error) {
	var header [frameHeader]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return frame{}, err
	}
	f := frame{kind: kind(header[0]), episode: binary.BigEndian.Uint32(header[1:])}
	n := binary.BigEndian.Uint32(header[5:])
	if uint64(n) > uint64(limit) {
		return frame{}, fmt.Errorf("a frame of %d bytes, at most %d are allowed", n, limit)
	}
	f.body = make([]byte, n)
	_, err := io.ReadFull(r, f.body)
	return f, err
}

// Usage is what a module has used up to an answer.
type Usage struct {
	// Steps are those of the one request.
	Steps uint64
	// MemoryBytes is the size of its memory.
	MemoryBytes uint64
}

const usageBytes = 16

func (u Usage) append(b []byte) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(b, u.Steps), u.MemoryBytes)
}

func readUsage(b []byte) Usage {
	return Usage{Steps: binary.BigEndian.Uint64(b), MemoryBytes: binary.BigEndian.Uint64(b[8:])}
}
