package node

import (
	"errors"
	"testing"

	"github.com/lightswarm/lightswarm/wire"
)

func TestChain(t *testing.T) {
	learner, other, stranger := wire.PeerID("learner"), wire.PeerID("other learner"), wire.PeerID("stranger")
	network, base := wire.SumCID([]byte("network")), wire.PolicyRef{StateDigest: [32]byte{1}, Anchor: wire.SumCID([]byte("base"))}
	id := func(name string) wire.CID { return wire.SumCID([]byte(name)) }
	release := func(version uint64, name, parent string, change ...func(*wire.SignedRelease)) wire.SignedRelease {
		r := wire.SignedRelease{ID: id(name), Signer: learner, Release: wire.Release{Network: network, Version: version, Policy: base}}
		if version > 0 {
			r.Parent, r.ParentStateDigest = id(parent), base.StateDigest
		}
		for _, f := range change {
			f(&r)
		}
		return r
	}
	zero := release(0, "zero", "")
	five := release(5, "five", "four")
	for name, c := range map[string]struct {
		before []wire.SignedRelease
		r      wire.SignedRelease
		want   error
	}{
		"first":              {nil, zero, nil},
		"next":               {[]wire.SignedRelease{zero}, release(1, "one", "zero"), nil},
		"jump":               {[]wire.SignedRelease{zero}, five, nil},
		"jump from nothing":  {nil, five, nil},
		"next of a jump":     {[]wire.SignedRelease{five}, release(6, "six", "five"), nil},
		"second learner":     {[]wire.SignedRelease{five}, release(6, "six", "five", func(r *wire.SignedRelease) { r.Signer = other }), nil},
		"again":              {[]wire.SignedRelease{five}, five, errOld},
		"other same version": {[]wire.SignedRelease{five}, release(5, "fork", "four"), errOld},
		"older":              {[]wire.SignedRelease{five}, release(4, "four", "three"), errOld},
		"fork":               {[]wire.SignedRelease{five}, release(6, "six", "another five"), errFork},
		"other weights":      {[]wire.SignedRelease{five}, release(6, "six", "five", func(r *wire.SignedRelease) { r.ParentStateDigest = [32]byte{2} }), errFork},
		"final of a fork":    {[]wire.SignedRelease{five}, release(6, "six", "another five", func(r *wire.SignedRelease) { r.Final = true }), nil},
		"other base":         {nil, release(0, "zero", "", func(r *wire.SignedRelease) { r.Policy.Anchor = id("else") }), errBase},
		"stranger":           {[]wire.SignedRelease{five}, release(6, "six", "five", func(r *wire.SignedRelease) { r.Signer = stranger }), errNotALearner},
		"of another network": {nil, release(0, "zero", "", func(r *wire.SignedRelease) { r.Network = id("else") }), errOtherNetwork},
	} {
		t.Run(name, func(t *testing.T) {
			follow := chain{charter: wire.SignedCharter{ID: network, Charter: wire.Charter{Learners: []wire.PeerID{learner, other}, Base: base}}}
			for _, r := range c.before {
				if err := follow.admit(r); err != nil {
					t.Fatal(err)
				}
			}
			before := follow.head
			err := follow.admit(c.r)
			if !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			if c.want == nil && follow.head.ID != c.r.ID || c.want != nil && follow.head != before {
				t.Errorf("the head is %+v", follow.head)
			}
		})
	}
}
