package wire

import (
	"crypto/ed25519"
	"fmt"

	"github.com/mr-tron/base58"
)

// PeerID is a libp2p peer id in binary: the identity multihash of a protobuf-encoded ed25519 public key. It has the
// value of libp2p's peer.ID, so that either converts to the other by a cast. The zero value names no peer.
type PeerID string

// peerPrefix is the identity multihash of 36 bytes, which are a libp2p PublicKey message: type ed25519, 32 bytes.
const peerPrefix = "\x00\x24\x08\x01\x12\x20"

// PeerIDBytes is the length of every PeerID.
const PeerIDBytes = len(peerPrefix) + ed25519.PublicKeySize

// NewPeerID returns the id of the peer that holds the public key.
func NewPeerID(public ed25519.PublicKey) PeerID { return PeerID(peerPrefix + string(public)) }

// ParsePeerID reads the binary form. Ids of other key types are refused: their key is not inside. The error wraps
// ErrMalformed.
func ParsePeerID(binary []byte) (PeerID, error) {
	if len(binary) != PeerIDBytes || string(binary[:len(peerPrefix)]) != peerPrefix {
		return "", fmt.Errorf("%w: not a peer id with an ed25519 key inside", ErrMalformed)
	}
	return PeerID(binary), nil
}

// ParsePeerIDString reads the text form, "12D3Koo…". The error wraps ErrMalformed.
func ParsePeerIDString(text string) (PeerID, error) {
	if len(text) > 2*PeerIDBytes { // base58 is 1.37 letters a byte; its decoder is quadratic
		return "", fmt.Errorf("%w: not a peer id: too long", ErrMalformed)
	}
	binary, err := base58.Decode(text)
	if err != nil {
		return "", fmt.Errorf("%w: peer id text: %w", ErrMalformed, err)
	}
	return ParsePeerID(binary)
}

// String returns the text form in base58, "12D3Koo…".
func (p PeerID) String() string { return base58.Encode([]byte(p)) }

// Short returns the last eight letters of the text form, which tell peers apart in a log.
func (p PeerID) Short() string {
	s := p.String()
	return s[max(0, len(s)-8):]
}

// PublicKey returns the key inside p, which must be a valid PeerID.
func (p PeerID) PublicKey() ed25519.PublicKey {
	if len(p) != PeerIDBytes {
		panic("wire: public key of an invalid peer id")
	}
	return ed25519.PublicKey(p[len(peerPrefix):])
}

// MarshalText returns the text form; the zero value is empty.
func (p PeerID) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (p *PeerID) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*p = ""
		return nil
	}
	parsed, err := ParsePeerIDString(string(text))
	if err != nil {
		return err
	}
	*p = parsed
	return nil
}
