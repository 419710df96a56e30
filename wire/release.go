package wire

import (
	"fmt"
	"time"

	"github.com/lightswarm/lightswarm/wire/wirepb"
)

// Release is a learner's statement that a policy is a version of the network's chain.
type Release struct {
	Network CID
	Version uint64
	Policy  PolicyRef
	// Parent is the ID of the release of version-1; undefined for version 0.
	Parent CID
	// ParentStateDigest is the parent's weights, from which deltas start; zero for version 0.
	ParentStateDigest [32]byte
	Deltas            []DeltaRef
	// Created has millisecond precision; SignRelease cuts the rest off.
	Created time.Time
	// Evaluate asks rollout nodes to measure this version on held-out tasks.
	Evaluate bool
	// GroupsPerVersion paces nodes under this version; 0 keeps the charter's.
	GroupsPerVersion uint32
	// GroupsTrained is how many groups the chain was trained on so far.
	GroupsTrained uint64
	// Final says that the learner stopped: nodes evaluate this version and then idle.
	Final bool
}

// DeltaRef points at a patch that turns the weights of an earlier version into this one's.
type DeltaRef struct {
	FromVersion uint64
	CID         CID
	Bytes       uint64
}

// SignedRelease is a release whose signature was verified. Whether the signer may release is the charter's to say.
type SignedRelease struct {
	Release
	// ID is the CID of Raw; the next release names it as its parent.
	ID     CID
	Signer PeerID
	// Raw is the encoded Signed message; callers do not change it.
	Raw []byte
}

// Validate returns a *ValidationError that names the first field at fault.
func (l Release) Validate() error {
	r := check("release")
	r.definedCID("network", l.Network)
	l.Policy.validate(r, "policy")
	if l.Version == 0 {
		r.require(!l.Parent.Defined(), "parent_cid", "must be empty for version 0")
		r.require(l.ParentStateDigest == [32]byte{}, "parent_state_digest", "must be empty for version 0")
	} else {
		r.definedCID("parent_cid", l.Parent)
		r.setDigest("parent_state_digest", l.ParentStateDigest)
	}
	r.atMost("deltas", len(l.Deltas), MaxDeltas)
	from := make(map[uint64]bool)
	for i, d := range l.Deltas {
		field := fmt.Sprintf("deltas[%d]", i)
		r.require(d.FromVersion < l.Version, field+".from_version", "must be an earlier version")
		r.require(!from[d.FromVersion], field+".from_version", "must differ from the other deltas'")
		from[d.FromVersion] = true
		r.definedCID(field+".cid", d.CID)
		r.between(field+".bytes", d.Bytes, 1, MaxDeltaBytes)
	}
	r.instant("created_unix_ms", l.Created)
	r.between("groups_per_version", uint64(l.GroupsPerVersion), 0, MaxGroupsPerVersion)
	return r.err
}

// SignRelease validates l and signs it. The result is exactly what OpenRelease returns for its bytes.
func SignRelease(k Key, l Release) (SignedRelease, error) {
	if err := l.Validate(); err != nil {
		return SignedRelease{}, err
	}
	payload, err := marshal("release", MaxGossipBytes, l.proto())
	if err != nil {
		return SignedRelease{}, err
	}
	raw, err := Sign(k, DomainRelease, payload)
	if err != nil {
		return SignedRelease{}, err
	}
	return OpenRelease(raw)
}

// OpenRelease verifies, decodes and validates a signed release. It copies raw.
func OpenRelease(raw []byte) (SignedRelease, error) {
	payload, signer, err := Open(DomainRelease, raw)
	if err != nil {
		return SignedRelease{}, err
	}
	l, err := decodeRelease(payload)
	if err != nil {
		return SignedRelease{}, err
	}
	return SignedRelease{Release: l, ID: SumCID(raw), Signer: signer, Raw: append([]byte(nil), raw...)}, nil
}

func (l Release) proto() *wirepb.Release {
	m := &wirepb.Release{
		Major:             Major,
		Network:           l.Network.Bytes(),
		Version:           l.Version,
		Policy:            l.Policy.proto(),
		ParentCid:         l.Parent.Bytes(),
		ParentStateDigest: digestBytes(l.ParentStateDigest),
		CreatedUnixMs:     l.Created.UnixMilli(),
		Evaluate:          l.Evaluate,
		GroupsPerVersion:  l.GroupsPerVersion,
		GroupsTrained:     l.GroupsTrained,
		Final:             l.Final,
	}
	for _, d := range l.Deltas {
		m.Deltas = append(m.Deltas, &wirepb.DeltaRef{FromVersion: d.FromVersion, Cid: d.CID.Bytes(), Bytes: d.Bytes})
	}
	return m
}

func decodeRelease(payload []byte) (Release, error) {
	var m wirepb.Release
	if err := unmarshal("release", MaxGossipBytes, payload, &m); err != nil {
		return Release{}, err
	}
	if err := checkMajor("release", m.Major); err != nil {
		return Release{}, err
	}
	f := &fields{message: "release"}
	l := Release{
		Network:           f.cid("network", m.Network),
		Version:           m.Version,
		Policy:            f.policyRef("policy", m.Policy),
		Parent:            f.cid("parent_cid", m.ParentCid),
		ParentStateDigest: f.digest("parent_state_digest", m.ParentStateDigest),
		Created:           fromMillis(m.CreatedUnixMs),
		Evaluate:          m.Evaluate,
		GroupsPerVersion:  m.GroupsPerVersion,
		GroupsTrained:     m.GroupsTrained,
		Final:             m.Final,
	}
	for i, d := range m.Deltas {
		l.Deltas = append(l.Deltas, DeltaRef{
			FromVersion: d.FromVersion,
			CID:         f.cid(fmt.Sprintf("deltas[%d].cid", i), d.Cid),
			Bytes:       d.Bytes,
		})
	}
	if f.err != nil {
		return Release{}, f.err
	}
	return l, l.Validate()
}
