package wire

import (
	"time"

	"github.com/lightswarm/lightswarm/wire/wirepb"
)

// Announcement says that a bundle exists and what is in it. The peer that ran its rollouts signs it.
type Announcement struct {
	Network CID
	// Sequence numbers a peer's announcements 0, 1, 2, …; the head protocol pulls them from a cursor.
	Sequence      uint64
	Purpose       Purpose
	Bundle        CID
	BundleBytes   uint32
	PolicyVersion uint64
	PolicyDigest  [32]byte
	Environment   CID
	// Counter is the draw counter for training, the block number for evaluation.
	Counter          uint64
	Rollouts         uint32
	CompletionTokens uint32
	// Created has millisecond precision; SignAnnouncement cuts the rest off.
	Created time.Time
}

// SignedAnnouncement is an announcement whose signature was verified.
type SignedAnnouncement struct {
	Announcement
	// ID is the CID of Raw.
	ID     CID
	Signer PeerID
	// Raw is the encoded Signed message; callers do not change it.
	Raw []byte
}

// Validate returns a *ValidationError that names the first field at fault.
func (a Announcement) Validate() error {
	r := check("announcement")
	r.definedCID("network", a.Network)
	r.require(a.Purpose.Valid(), "purpose", "must be train, evaluate-sampled or evaluate-greedy")
	r.definedCID("bundle_cid", a.Bundle)
	r.between("bundle_bytes", uint64(a.BundleBytes), 1, MaxBundleBytes)
	r.setDigest("policy_digest", a.PolicyDigest)
	r.definedCID("environment_cid", a.Environment)
	r.between("rollouts", uint64(a.Rollouts), 1, MaxRolloutsPerBundle)
	r.between("completion_tokens", uint64(a.CompletionTokens), 0, MaxBundleTokens)
	r.instant("created_unix_ms", a.Created)
	return r.err
}

// SignAnnouncement validates a and signs it. The result is exactly what OpenAnnouncement returns for its bytes.
func SignAnnouncement(k Key, a Announcement) (SignedAnnouncement, error) {
	if err := a.Validate(); err != nil {
		return SignedAnnouncement{}, err
	}
	payload, err := marshal("announcement", MaxGossipBytes, a.proto())
	if err != nil {
		return SignedAnnouncement{}, err
	}
	raw, err := Sign(k, DomainAnnouncement, payload)
	if err != nil {
		return SignedAnnouncement{}, err
	}
	return OpenAnnouncement(raw)
}

// OpenAnnouncement verifies, decodes and validates a signed announcement. It copies raw.
func OpenAnnouncement(raw []byte) (SignedAnnouncement, error) {
	payload, signer, err := Open(DomainAnnouncement, raw)
	if err != nil {
		return SignedAnnouncement{}, err
	}
	a, err := decodeAnnouncement(payload)
	if err != nil {
		return SignedAnnouncement{}, err
	}
	return SignedAnnouncement{Announcement: a, ID: SumCID(raw), Signer: signer, Raw: append([]byte(nil), raw...)}, nil
}

func (a Announcement) proto() *wirepb.Announcement {
	return &wirepb.Announcement{
		Major:            Major,
		Network:          a.Network.Bytes(),
		Sequence:         a.Sequence,
		Purpose:          wirepb.Purpose(a.Purpose),
		BundleCid:        a.Bundle.Bytes(),
		BundleBytes:      a.BundleBytes,
		PolicyVersion:    a.PolicyVersion,
		PolicyDigest:     digestBytes(a.PolicyDigest),
		EnvironmentCid:   a.Environment.Bytes(),
		Counter:          a.Counter,
		Rollouts:         a.Rollouts,
		CompletionTokens: a.CompletionTokens,
		CreatedUnixMs:    a.Created.UnixMilli(),
	}
}

func decodeAnnouncement(payload []byte) (Announcement, error) {
	var m wirepb.Announcement
	if err := unmarshal("announcement", MaxGossipBytes, payload, &m); err != nil {
		return Announcement{}, err
	}
	if err := checkMajor("announcement", m.Major); err != nil {
		return Announcement{}, err
	}
	f := &fields{message: "announcement"}
	a := Announcement{
		Network:          f.cid("network", m.Network),
		Sequence:         m.Sequence,
		Purpose:          f.purpose("purpose", m.Purpose),
		Bundle:           f.cid("bundle_cid", m.BundleCid),
		BundleBytes:      m.BundleBytes,
		PolicyVersion:    m.PolicyVersion,
		PolicyDigest:     f.digest("policy_digest", m.PolicyDigest),
		Environment:      f.cid("environment_cid", m.EnvironmentCid),
		Counter:          m.Counter,
		Rollouts:         m.Rollouts,
		CompletionTokens: m.CompletionTokens,
		Created:          fromMillis(m.CreatedUnixMs),
	}
	if f.err != nil {
		return Announcement{}, f.err
	}
	return a, a.Validate()
}

// purpose refuses values that a narrower type would cut.
func (f *fields) purpose(field string, p wirepb.Purpose) Purpose {
	if p < 0 || p > wirepb.Purpose_PURPOSE_EVALUATE_GREEDY {
		f.fail(field, "is unknown to this version of lightswarm")
		return 0
	}
	return Purpose(p)
}
