package policy

import (
	"encoding/hex"
	"errors"
	"fmt"
)

// Digest identifies a policy, or the state of its weights: a sha256.
type Digest [32]byte

// ErrDigest says that text is not a digest.
var ErrDigest = errors.New("bad policy digest")

// ParseDigest reads the 64 hexadecimal digits that String writes. It fails with ErrDigest.
func ParseDigest(s string) (Digest, error) {
	var d Digest
	if len(s) != 2*len(d) {
		return Digest{}, fmt.Errorf("%w: %d characters, not %d", ErrDigest, len(s), 2*len(d))
	}
	if _, err := hex.Decode(d[:], []byte(s)); err != nil {
		return Digest{}, fmt.Errorf("%w: %s", ErrDigest, err)
	}
	return d, nil
}

// String is the digest in 64 lower-case hexadecimal digits.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// Short is the first 12 digits of String, for people.
func (d Digest) Short() string { return hex.EncodeToString(d[:6]) }

// IsZero reports whether d was never set.
func (d Digest) IsZero() bool { return d == Digest{} }

// MarshalText is String.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText is ParseDigest.
func (d *Digest) UnmarshalText(b []byte) (err error) {
	*d, err = ParseDigest(string(b))
	return err
}
