package wire

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
)

// CID names content by its sha2-256 digest. It is comparable, and its zero value names nothing. Its binary and text
// forms are those of IPFS: CIDv1, raw codec, sha2-256; no other kind is accepted, so that content has one name.
type CID struct{ digest [sha256.Size]byte }

const (
	// cidPrefix is CIDv1, the raw codec, sha2-256, and the digest's length.
	cidPrefix = "\x01\x55\x12\x20"
	// CIDBytes is the length of a CID's binary form.
	CIDBytes = len(cidPrefix) + sha256.Size
	// cidTextBytes is the length of the text form: the multibase letter and base32 without padding.
	cidTextBytes = 1 + (CIDBytes*8+4)/5
)

var cidText = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// SumCID returns the CID of b.
func SumCID(b []byte) CID { return CID{digest: sha256.Sum256(b)} }

// NewCID returns the CID of the content that has this sha2-256 digest, which must not be all zero to name something.
func NewCID(digest [sha256.Size]byte) CID { return CID{digest: digest} }

// Digest returns the content's sha2-256 digest; NewCID undoes it.
func (c CID) Digest() [sha256.Size]byte { return c.digest }

// ParseCID reads the binary form. The error wraps ErrMalformed.
func ParseCID(binary []byte) (CID, error) {
	if len(binary) != CIDBytes || string(binary[:len(cidPrefix)]) != cidPrefix {
		return CID{}, fmt.Errorf("%w: not a CIDv1 of raw content under sha2-256", ErrMalformed)
	}
	var c CID
	copy(c.digest[:], binary[len(cidPrefix):])
	if !c.Defined() {
		return CID{}, fmt.Errorf("%w: a CID's digest is never all zero", ErrMalformed)
	}
	return c, nil
}

// ParseCIDString reads the text form. The error wraps ErrMalformed.
func ParseCIDString(text string) (CID, error) {
	if len(text) != cidTextBytes || text[0] != 'b' {
		return CID{}, fmt.Errorf("%w: not a CID in base32: it starts with bafkrei and has %d letters", ErrMalformed, cidTextBytes)
	}
	binary, err := cidText.DecodeString(text[1:])
	if err != nil {
		return CID{}, fmt.Errorf("%w: CID text: %w", ErrMalformed, err)
	}
	c, err := ParseCID(binary)
	if err == nil && c.String() != text {
		// Base32 leaves four bits unused at the end; only zeros are canonical.
		return CID{}, fmt.Errorf("%w: CID text has stray bits at its end", ErrMalformed)
	}
	return c, err
}

// Bytes returns the binary form, or nil when c is not defined.
func (c CID) Bytes() []byte {
	if !c.Defined() {
		return nil
	}
	return append(append(make([]byte, 0, CIDBytes), cidPrefix...), c.digest[:]...)
}

// String returns the text form, "bafkrei…", or "" when c is not defined.
func (c CID) String() string {
	if !c.Defined() {
		return ""
	}
	return "b" + cidText.EncodeToString(c.Bytes())
}

// Defined says whether c names something.
func (c CID) Defined() bool { return c != CID{} }

// Equal is ==, for libraries that compare by method.
func (c CID) Equal(other CID) bool { return c == other }

// Verify returns an error that wraps ErrCIDMismatch when b is not the content that c names.
func (c CID) Verify(b []byte) error {
	if got := SumCID(b); got != c {
		return fmt.Errorf("%w: %d bytes are %s, not %s", ErrCIDMismatch, len(b), got, c)
	}
	return nil
}

// MarshalText returns the text form; an undefined CID is empty.
func (c CID) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (c *CID) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*c = CID{}
		return nil
	}
	parsed, err := ParseCIDString(string(text))
	if err != nil {
		return err
	}
	*c = parsed
	return nil
}
