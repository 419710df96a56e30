package wire

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/ipfs/go-cid"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multihash"
	"pgregory.net/rapid"

	"github.com/lightswarm/lightswarm/wire/wirepb"
)

func TestCIDIsThatOfIPFS(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		content := rapid.SliceOf(rapid.Byte()).Draw(t, "content")
		ours := SumCID(content)
		hash, err := multihash.Sum(content, multihash.SHA2_256, -1)
		if err != nil {
			t.Fatal(err)
		}
		theirs := cid.NewCidV1(cid.Raw, hash)
		if !bytes.Equal(ours.Bytes(), theirs.Bytes()) || ours.String() != theirs.String() {
			t.Fatalf("%s, but IPFS says %s", ours, theirs)
		}
		parsed, err := ParseCID(theirs.Bytes())
		if err != nil || parsed != ours {
			t.Fatalf("from IPFS's bytes: %s (%v)", parsed, err)
		}
		parsed, err = ParseCIDString(theirs.String())
		if err != nil || parsed != ours {
			t.Fatalf("from IPFS's text: %s (%v)", parsed, err)
		}
		if back, err := cid.Cast(ours.Bytes()); err != nil || !back.Equals(theirs) {
			t.Fatalf("IPFS reads our bytes as %s (%v)", back, err)
		}
		if err := ours.Verify(content); err != nil {
			t.Fatal(err)
		}
		if err := ours.Verify(append(content, 0)); !errors.Is(err, ErrCIDMismatch) {
			t.Fatalf("other content: %v", err)
		}
		if NewCID(ours.Digest()) != ours || !ours.Equal(parsed) {
			t.Fatal("the digest does not lead back")
		}
	})
}

func TestOtherCIDsAreRefused(t *testing.T) {
	hash, err := multihash.Sum([]byte("x"), multihash.SHA2_256, -1)
	if err != nil {
		t.Fatal(err)
	}
	long, err := multihash.Sum([]byte("x"), multihash.SHA2_512, -1)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]cid.Cid{
		"version 0": cid.NewCidV0(hash), "another codec": cid.NewCidV1(cid.DagProtobuf, hash), "another hash": cid.NewCidV1(cid.Raw, long),
	} {
		if _, err := ParseCID(c.Bytes()); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s in binary: %v", name, err)
		}
		if _, err := ParseCIDString(c.String()); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s in text: %v", name, err)
		}
	}
	good := SumCID([]byte("x")).String()
	for _, text := range []string{"", "b", good[1:], strings.ToUpper(good), good[:len(good)-1] + "1", good[:len(good)-1] + "b", "z" + good[1:], good + "a"} {
		if c, err := ParseCIDString(text); !errors.Is(err, ErrMalformed) {
			t.Errorf("%q is %s (%v)", text, c, err)
		}
	}
	if _, err := ParseCID(append([]byte(cidPrefix), make([]byte, 32)...)); !errors.Is(err, ErrMalformed) {
		t.Errorf("a digest of zeros: %v", err)
	}
	if zero := (CID{}); zero.Defined() || zero.Bytes() != nil || zero.String() != "" {
		t.Error("the zero CID names something")
	}
}

func TestPeerIDIsThatOfLibp2p(t *testing.T) {
	for range 20 {
		private, public, err := crypto.GenerateEd25519Key(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := peer.IDFromPublicKey(public)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := private.Raw()
		if err != nil {
			t.Fatal(err)
		}
		k := NewKey(ed25519.PrivateKey(raw))
		if peer.ID(k.Peer()) != theirs || k.Peer().String() != theirs.String() {
			t.Fatalf("%s, but libp2p says %s", k.Peer(), theirs)
		}
		// A signature is plain ed25519 that libp2p's keys verify too.
		signature, err := k.Sign([]byte("hello"))
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := public.Verify([]byte("hello"), signature); !ok || err != nil {
			t.Fatalf("libp2p does not accept the signature (%v)", err)
		}
		parsed, err := ParsePeerIDString(theirs.String())
		if err != nil || parsed != k.Peer() {
			t.Fatalf("from libp2p's text: %s (%v)", parsed, err)
		}
		if !strings.HasSuffix(theirs.String(), parsed.Short()) || len(parsed.Short()) != 8 {
			t.Errorf("short is %q", parsed.Short())
		}
	}
}

func TestOtherPeerIDsAreRefused(t *testing.T) {
	_, rsa, err := crypto.GenerateKeyPair(crypto.RSA, 2048)
	if err != nil {
		t.Fatal(err)
	}
	_, secp, err := crypto.GenerateKeyPair(crypto.Secp256k1, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, public := range []crypto.PubKey{rsa, secp} {
		id, err := peer.IDFromPublicKey(public)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParsePeerID([]byte(id)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", id, err)
		}
		if _, err := ParsePeerIDString(id.String()); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", id, err)
		}
	}
	for _, text := range []string{"", "0OIl", strings.Repeat("1", 1000)} {
		if _, err := ParsePeerIDString(text); !errors.Is(err, ErrMalformed) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestIdentitiesAsJSON(t *testing.T) {
	type both struct {
		C CID
		P PeerID
		M map[CID]int
	}
	for _, want := range []both{{C: SumCID([]byte("x")), P: testKey('a').Peer()}, {}} {
		b, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		var got both
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatal(err)
		}
		if got.C != want.C || got.P != want.P {
			t.Errorf("%s became %+v", b, got)
		}
	}
	var got both
	for _, text := range []string{`{"C":"nonsense"}`, `{"P":"nonsense"}`} {
		if err := json.Unmarshal([]byte(text), &got); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	k := testKey('a')
	payload := []byte("a statement")
	signed, err := Sign(k, DomainPresence, payload)
	if err != nil {
		t.Fatal(err)
	}
	got, signer, err := Open(DomainPresence, signed)
	if err != nil || !bytes.Equal(got, payload) || signer != k.Peer() {
		t.Fatalf("opened %q by %s (%v)", got, signer, err)
	}
	if _, _, err := Open(DomainRelease, signed); !errors.Is(err, ErrSignature) {
		t.Errorf("in another domain: %v", err)
	}
	envelope := func(change func(*wirepb.Signed)) []byte {
		var m wirepb.Signed
		if err := unmarshal("signed", MaxGossipBytes, signed, &m); err != nil {
			t.Fatal(err)
		}
		change(&m)
		b, err := marshal("signed", MaxGossipBytes, &m)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for name, test := range map[string]struct {
		want   error
		change func(*wirepb.Signed)
	}{
		"another payload":  {ErrSignature, func(m *wirepb.Signed) { m.Payload = []byte("another") }},
		"another signer":   {ErrSignature, func(m *wirepb.Signed) { m.Signer = []byte(testKey('b').Peer()) }},
		"a short signer":   {ErrMalformed, func(m *wirepb.Signed) { m.Signer = m.Signer[:20] }},
		"no signature":     {ErrSignature, func(m *wirepb.Signed) { m.Signature = nil }},
		"another one":      {ErrSignature, func(m *wirepb.Signed) { m.Signature[5] ^= 1 }},
		"a long signature": {ErrSignature, func(m *wirepb.Signed) { m.Signature = append(m.Signature, 0) }},
	} {
		if _, _, err := Open(DomainPresence, envelope(test.change)); !errors.Is(err, test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// The same three fields in another order are the same message to protobuf, but not the accepted encoding.
	swapped := append(bytes.Clone(signed[len(payload)+2:]), signed[:len(payload)+2]...)
	if _, _, err := Open(DomainPresence, swapped); !errors.Is(err, ErrMalformed) {
		t.Errorf("fields in another order: %v", err)
	}
	// Nor is the last of two payloads.
	twice := append(bytes.Clone(signed[:len(payload)+2]), signed...)
	if _, _, err := Open(DomainPresence, twice); !errors.Is(err, ErrMalformed) {
		t.Errorf("two payloads: %v", err)
	}
}

// brokenKey cannot sign.
type brokenKey struct{ Key }

var errLocked = errors.New("the key is locked")

func (brokenKey) Sign([]byte) ([]byte, error) { return nil, errLocked }

func TestErrorsOfTheKeyAreKept(t *testing.T) {
	k := brokenKey{testKey('a')}
	if _, err := SignCharter(k, testCharter()); !errors.Is(err, errLocked) {
		t.Error(err)
	}
	if _, err := SignRelease(k, testRelease()); !errors.Is(err, errLocked) {
		t.Error(err)
	}
}
