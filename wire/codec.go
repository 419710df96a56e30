package wire

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
)

// Major is the newest format major of every message that this build reads, and the one that it writes.
const Major = 1

// marshal encodes m deterministically and refuses what a reader would refuse for its size.
func marshal(name string, limit int, m proto.Message) ([]byte, error) {
	if size := proto.Size(m); size > limit {
		return nil, tooLarge(name, size, limit)
	}
	b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", name, err)
	}
	return b, nil
}

// unmarshal decodes at most limit bytes into m. Protobuf's decoder allocates in proportion to its input, so the
// check of the input's size bounds its memory.
func unmarshal(name string, limit int, b []byte, m proto.Message) error {
	if len(b) > limit {
		return tooLarge(name, len(b), limit)
	}
	if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(b, m); err != nil {
		return fmt.Errorf("decode %s: %w: %w", name, ErrMalformed, err)
	}
	return nil
}

func tooLarge(name string, size, limit int) error {
	return fmt.Errorf("%s: %w: %d bytes, the limit is %d", name, ErrTooLarge, size, limit)
}

// checkMajor refuses messages from the future.
func checkMajor(message string, major uint32) error {
	switch {
	case major > Major:
		return fmt.Errorf("%s: %w: it has format %d and this program reads up to %d; upgrade lightswarm on this machine",
			message, ErrNewerMajor, major, Major)
	case major == 0:
		return &ValidationError{Message: message, Field: "major", Why: "is missing"}
	}
	return nil
}

// fields turns the raw fields of one message into typed values and keeps the first error.
type fields struct {
	message string
	err     error
}

func (f *fields) fail(field, why string) {
	if f.err == nil {
		f.err = &ValidationError{Message: f.message, Field: field, Why: why}
	}
}

// cid reads a CID that may be left out; Validate says where it may not.
func (f *fields) cid(field string, b []byte) CID {
	if len(b) == 0 {
		return CID{}
	}
	c, err := ParseCID(b)
	if err != nil {
		f.fail(field, "must be a CIDv1 of raw content under sha2-256")
	}
	return c
}

// digest reads a digest that may be left out, which is all zero.
func (f *fields) digest(field string, b []byte) (d [32]byte) {
	if len(b) != 0 && len(b) != len(d) {
		f.fail(field, "must be 32 bytes")
	}
	copy(d[:], b)
	return d
}

func (f *fields) peer(field string, b []byte) PeerID {
	p, err := ParsePeerID(b)
	if err != nil {
		f.fail(field, "must be a peer id with an ed25519 key inside")
	}
	return p
}

// digestBytes is the encoding of a digest; all zero is left out.
func digestBytes(d [32]byte) []byte {
	if d == [32]byte{} {
		return nil
	}
	return d[:]
}

// rules checks one message's values and keeps the first error.
type rules struct{ fields }

func check(message string) *rules { return &rules{fields{message: message}} }

func (r *rules) require(ok bool, field, why string) {
	if !ok {
		r.fail(field, why)
	}
}

func (r *rules) between(field string, v, low, high uint64) {
	if v < low || v > high {
		r.fail(field, fmt.Sprintf("is %d; it must be between %d and %d", v, low, high))
	}
}

func (r *rules) atMost(field string, count, limit int) {
	if count > limit {
		r.fail(field, fmt.Sprintf("has %d elements; at most %d are allowed", count, limit))
	}
}

func (r *rules) definedCID(field string, c CID) { r.require(c.Defined(), field, "must be a CID") }

func (r *rules) setDigest(field string, d [32]byte) {
	r.require(d != [32]byte{}, field, "must be a digest of 32 bytes")
}

// name accepts a non-empty printable text of one line without blanks at its ends.
func (r *rules) name(field, s string, limit int) {
	r.require(s != "", field, "must not be empty")
	r.text(field, s, limit)
	r.require(s == strings.TrimSpace(s), field, "must not start or end with blanks")
}

// text accepts printable text of one line, or none.
func (r *rules) text(field, s string, limit int) {
	if len(s) > limit {
		r.fail(field, fmt.Sprintf("has %d bytes; at most %d are allowed", len(s), limit))
		return
	}
	unprintable := func(c rune) bool { return !unicode.IsPrint(c) }
	r.require(utf8.ValidString(s) && !strings.ContainsFunc(s, unprintable), field, "must be printable text of one line")
}

// instant accepts times that every reader can print.
func (r *rules) instant(field string, t time.Time) {
	ms := t.UnixMilli()
	const year10000 = 253402300800000
	r.require(ms > 0 && ms < year10000, field, "must be a time between the years 1970 and 9999")
}

func finite(v float32) bool { return !math.IsNaN(float64(v)) && !math.IsInf(float64(v), 0) }

// fromMillis returns the instant in UTC, as every decoded message has it.
func fromMillis(ms int64) time.Time { return time.UnixMilli(ms).UTC() }
