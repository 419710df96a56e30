package wire

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"

	"github.com/lightswarm/lightswarm/wire/wirepb"
)

// Domain separates signatures of one kind of message from all others: a payload signed in one domain proves nothing
// in another. The number at its end changes only when the signature scheme does; a message's own format has a major.
type Domain string

// The domains of Lightswarm.
const (
	DomainCharter      Domain = "lightswarm/charter/1"
	DomainRelease      Domain = "lightswarm/release/1"
	DomainAnnouncement Domain = "lightswarm/announcement/1"
	DomainPresence     Domain = "lightswarm/presence/1"
	DomainEnvironment  Domain = "lightswarm/environment/1"
)

// maxSignedBytes is the limit on the encoded Signed message of a domain.
func (d Domain) maxSignedBytes() int {
	if d == DomainCharter {
		return MaxCharterBytes
	}
	return MaxGossipBytes
}

// Key signs as one peer. It is safe for concurrent use.
type Key interface {
	// Sign returns the ed25519 signature of b itself (no prehash).
	Sign(b []byte) ([]byte, error)
	// Peer is the id that has the public key inside.
	Peer() PeerID
}

// NewKey returns a Key that holds the private key in memory.
func NewKey(private ed25519.PrivateKey) Key {
	return memoryKey{private: private, peer: NewPeerID(private.Public().(ed25519.PublicKey))}
}

type memoryKey struct {
	private ed25519.PrivateKey
	peer    PeerID
}

func (k memoryKey) Sign(b []byte) ([]byte, error) { return ed25519.Sign(k.private, b), nil }
func (k memoryKey) Peer() PeerID                  { return k.peer }

// signingInput is what a signature covers: sha256(domain || 0x00 || payload). No domain contains a zero byte, so no
// two (domain, payload) pairs share an input.
func signingInput(d Domain, payload []byte) []byte {
	h := sha256.New()
	h.Write([]byte(d))
	h.Write([]byte{0})
	h.Write(payload)
	return h.Sum(nil)
}

// Sign returns the encoded Signed message that carries payload and k's signature over it in domain d. It fails with
// ErrTooLarge when readers would refuse the result for its size, or with the key's own error.
func Sign(k Key, d Domain, payload []byte) ([]byte, error) {
	signature, err := k.Sign(signingInput(d, payload))
	if err != nil {
		return nil, fmt.Errorf("sign %s: %w", d, err)
	}
	return marshal(string(d), d.maxSignedBytes(), &wirepb.Signed{
		Payload:   payload,
		Signer:    []byte(k.Peer()),
		Signature: signature,
	})
}

// Open verifies an encoded Signed message of domain d and returns what it carries. The payload is a copy. Errors wrap
// ErrTooLarge, ErrMalformed or ErrSignature.
func Open(d Domain, signed []byte) (payload []byte, signer PeerID, err error) {
	var envelope wirepb.Signed
	if err := unmarshal(string(d), d.maxSignedBytes(), signed, &envelope); err != nil {
		return nil, "", err
	}
	signer, err = ParsePeerID(envelope.Signer)
	if err != nil {
		return nil, "", fmt.Errorf("%s: signer: %w", d, err)
	}
	if len(envelope.Signature) != ed25519.SignatureSize {
		return nil, "", fmt.Errorf("%s: %w: it has %d bytes", d, ErrSignature, len(envelope.Signature))
	}
	canonical, err := marshal(string(d), d.maxSignedBytes(), &wirepb.Signed{
		Payload:   envelope.Payload,
		Signer:    envelope.Signer,
		Signature: envelope.Signature,
	})
	if err != nil || !bytes.Equal(canonical, signed) {
		return nil, "", fmt.Errorf("%s: %w: its envelope is not in the one accepted encoding", d, ErrMalformed)
	}
	if !ed25519.Verify(signer.PublicKey(), signingInput(d, envelope.Payload), envelope.Signature) {
		return nil, "", fmt.Errorf("%s: %w by %s", d, ErrSignature, signer)
	}
	return envelope.Payload, signer, nil
}
