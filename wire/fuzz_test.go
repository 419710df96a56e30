package wire

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
)

// FuzzDecode gives the same bytes to every decoder. What one accepts must be valid and of bounded size; what it
// refuses must carry one of the package's errors.
func FuzzDecode(f *testing.F) {
	all := forms()
	for i, form := range all {
		b, err := form.encode()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(i), b)
		if d, ok := domains[form.name]; ok {
			payload, _, err := Open(d, b)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(uint8(len(all)+i), payload)
		}
	}
	payloads := []func([]byte) (any, error){
		func(b []byte) (any, error) { return decodeCharter(b) },
		func(b []byte) (any, error) { return decodeRelease(b) },
		func(b []byte) (any, error) { return decodeAnnouncement(b) },
		func(b []byte) (any, error) { return decodePresence(b) },
		func(b []byte) (any, error) { return decodeEnvironmentPackage(b) },
	}
	k := testKey('a')
	f.Fuzz(func(t *testing.T, which uint8, b []byte) {
		// Behind the signatures, where mutated bytes would never get, the payload decoders are called directly.
		decode := all[int(which)%len(all)].decode
		if n := int(which) - len(all); n >= 0 && n < len(payloads) {
			decode = payloads[n]
		}
		v, err := decode(b)
		if err != nil {
			for _, known := range []error{ErrMalformed, ErrTooLarge, ErrSignature, ErrNewerMajor} {
				if errors.Is(err, known) {
					return
				}
			}
			t.Fatalf("an error of no kind: %v", err)
		}
		again, err := encodeAny(k, v)
		if errors.Is(err, ErrTooLarge) {
			return // a payload of up to the whole limit leaves no room for a signature
		}
		if err != nil {
			t.Fatalf("%+v does not encode: %v", v, err)
		}
		same, err := decodeLike(v, again)
		if err != nil || !reflect.DeepEqual(v, same) {
			t.Fatalf("%+v became %+v (%v)", v, same, err)
		}
	})
}

func encodeAny(k Key, v any) ([]byte, error) {
	switch v := v.(type) {
	case Charter:
		s, err := SignCharter(k, v)
		return s.Raw, err
	case Release:
		s, err := SignRelease(k, v)
		return s.Raw, err
	case Announcement:
		s, err := SignAnnouncement(k, v)
		return s.Raw, err
	case Presence:
		s, err := SignPresence(k, v)
		return s.Raw, err
	case EnvironmentPackage:
		s, err := SignEnvironmentPackage(k, v)
		return s.Raw, err
	case EnvironmentManifest:
		return EncodeManifest(v)
	case PolicyManifest:
		return EncodePolicyManifest(v)
	case BlockRequest:
		return EncodeBlockRequest(v)
	case BlockHeader:
		return EncodeBlockHeader(v)
	case HeadRequest:
		return EncodeHeadRequest(v)
	case HeadResponse:
		return EncodeHeadResponse(v)
	case PeersRequest:
		return EncodePeersRequest(v)
	case PeersResponse:
		return EncodePeersResponse(v)
	case PackagesRequest:
		return EncodePackagesRequest(v)
	case PackagesResponse:
		return EncodePackagesResponse(v)
	}
	panic("a message that no encoder knows")
}

// decodeLike decodes b with the decoder of v's type.
func decodeLike(v any, b []byte) (any, error) {
	for _, f := range forms() {
		if reflect.TypeOf(f.value) == reflect.TypeOf(v) {
			return f.decode(b)
		}
	}
	panic("a message that no decoder knows")
}

// FuzzText makes sure that each identity has one text form.
func FuzzText(f *testing.F) {
	f.Add(SumCID([]byte("x")).String())
	f.Add(testKey('a').Peer().String())
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		if c, err := ParseCIDString(text); err == nil && c.String() != text {
			t.Errorf("%q is a CID, but so is %q", text, c)
		}
		if p, err := ParsePeerIDString(text); err == nil && p.String() != text {
			t.Errorf("%q is a peer id, but so is %q", text, p)
		}
		if c, err := ParseCID([]byte(text)); err == nil && !bytes.Equal(c.Bytes(), []byte(text)) {
			t.Errorf("%q is a CID in binary, but so is %q", text, c.Bytes())
		}
	})
}
