package bundle

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/lightswarm/lightswarm/wire"
)

const (
	// magic starts every bundle file.
	magic = "LSWB"
	// A file's major changes when an older reader would misread it; its minor when the reader would only miss something.
	// A reader that does not know grammars would take log-probs for those of the whole vocabulary, so a bundle that has
	// some is of a major of its own. All others are still written for every reader.
	majorPlain    = 1
	majorGrammars = 2
	major         = majorGrammars // the newest
	// A bundle of which a call says what was asked is of minor 1, all others are of minor 0, so that each has one form.
	minorPlain = 0
	minorAsked = 1
	// maxHeaderBytes bounds the header. That of this minor has at most 170 bytes; newer minors may append.
	maxHeaderBytes = 1 << 10
)

// header is what a file says before its columns, in plain bytes: the bundle's identity, which does not compress, and
// the sizes of what follows.
type header struct {
	major, minor byte
	bundle       Bundle // network, environment, policy, purpose, peer and counter
	form         form
	rollouts     int
	columnsBytes int // length of the zstd frame
}

// appendHeader writes the file's start: magic, major, minor, the header's length in two bytes, the header.
func appendHeader(dst []byte, major, minor byte, b *Bundle, f form, columnsBytes int) []byte {
	network, environment := b.Network.Digest(), b.Environment.Digest()
	var h column
	h = append(h, network[:]...)
	h = append(h, environment[:]...)
	h = append(h, b.PolicyDigest[:]...)
	h = append(h, byte(b.Purpose), byte(f))
	if b.Peer != "" {
		h = append(h, b.Peer.PublicKey()...)
	}
	h.put(b.PolicyVersion)
	h.put(b.Counter)
	h.put(uint64(len(b.Rollouts)))
	h.put(uint64(columnsBytes))

	dst = append(dst, magic...)
	dst = append(dst, major, minor)
	dst = binary.LittleEndian.AppendUint16(dst, uint16(len(h)))
	return append(dst, h...)
}

// readHeader reads what appendHeader wrote, and ignores what a newer minor appended to it.
func readHeader(r *boundedReader) (*header, error) {
	start := make([]byte, len(magic)+4)
	if err := r.full(start); err != nil {
		return nil, err
	}
	if string(start[:len(magic)]) != magic {
		return nil, malformed("it does not start like a bundle")
	}
	switch m := start[len(magic)]; {
	case m > major:
		return nil, fmt.Errorf("bundle: %w: it has format %d and this program reads up to %d; upgrade lightswarm on this machine",
			wire.ErrNewerMajor, m, major)
	case m < majorPlain:
		return nil, malformed("its format was never published")
	}
	length := int(binary.LittleEndian.Uint16(start[len(magic)+2:]))
	if length > maxHeaderBytes {
		return nil, tooLarge("bytes of header are", length, maxHeaderBytes)
	}
	raw := make([]byte, length)
	if err := r.full(raw); err != nil {
		return nil, err
	}
	c := &cursor{rest: raw}
	h := &header{major: start[len(magic)], minor: start[len(magic)+1], bundle: Bundle{
		Network:      wire.NewCID(digest(c)),
		Environment:  wire.NewCID(digest(c)),
		PolicyDigest: digest(c),
		Purpose:      wire.Purpose(c.get(1<<7 - 1)),
	}}
	h.form = form(c.get(1<<7 - 1))
	if h.bundle.Purpose == wire.PurposeTrain {
		key := digest(c)
		h.bundle.Peer = wire.NewPeerID(key[:])
	}
	h.bundle.PolicyVersion = c.get(1<<64 - 1)
	h.bundle.Counter = c.get(1<<64 - 1)
	h.rollouts = int(c.get(wire.MaxRolloutsPerBundle))
	h.columnsBytes = int(c.get(wire.MaxBundleBytes))
	switch {
	case c.err != nil:
		return nil, c.err
	case h.form != formGrid && h.form != formFloat32:
		return nil, invalid("log-prob form", "is unknown to this version of lightswarm")
	case h.rollouts == 0:
		return nil, invalid("rollouts", "must be at least 1")
	}
	return h, nil
}

// digest reads 32 bytes.
func digest(c *cursor) (d [32]byte) {
	copy(d[:], c.take(uint64(len(d))))
	return d
}

// boundedReader refuses to read more than a limit, and calls an early end malformed.
type boundedReader struct {
	r           io.Reader
	left, limit int
}

// full fills p.
func (r *boundedReader) full(p []byte) error {
	if len(p) > r.left {
		return tooLarge("bytes are at least", r.limit-r.left+len(p), r.limit)
	}
	n, err := io.ReadFull(r.r, p)
	r.left -= n
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return malformed("it ends early")
	}
	return err
}

// end makes sure that nothing follows.
func (r *boundedReader) end() error {
	var b [1]byte
	switch _, err := io.ReadFull(r.r, b[:]); err {
	case io.EOF:
		return nil
	case nil:
		return malformed("bytes follow its end")
	default:
		return err
	}
}
