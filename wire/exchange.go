package wire

import (
	"fmt"

	"github.com/lightswarm/lightswarm/wire/wirepb"
)

// BlockRequest asks a peer for blocks, 1 to MaxBlockRequestCIDs of them.
type BlockRequest struct{ CIDs []CID }

// BlockHeader precedes one block's bytes.
type BlockHeader struct {
	// Index is the position in BlockRequest.CIDs.
	Index uint32
	// Found is false when the peer does not have the block; no bytes follow.
	Found bool
	// Bytes is the block's length, at most MaxBlockBytes; 0 when it was not found.
	Bytes uint32
}

// HeadRequest asks a peer what it knows beyond a cursor.
type HeadRequest struct {
	Network CID
	// ReleaseFrom is the first release version wanted.
	ReleaseFrom uint64
	// MaxReleases is at most MaxHeadReleases.
	MaxReleases uint32
	// Cursors name, for each announcing peer, the first sequence wanted. None asks for all that the peer keeps of
	// its own.
	Cursors []Cursor
	// MaxAnnouncements is at most MaxHeadAnnouncements.
	MaxAnnouncements uint32
}

// Cursor is a position in one peer's announcements.
type Cursor struct {
	Peer         PeerID
	FromSequence uint64
}

// HeadResponse carries Signed bytes as they were stored; the asker opens each.
type HeadResponse struct {
	Releases, Announcements [][]byte
	// HeadVersion is the newest version that the answering peer knows.
	HeadVersion  uint64
	KnownNetwork bool
}

// PeersRequest asks for addresses of other members.
type PeersRequest struct {
	Network CID
	// MaxPeers is at most MaxPeerRecords.
	MaxPeers uint32
}

// PeersResponse carries signed peer records (libp2p envelopes).
type PeersResponse struct{ Records [][]byte }

// PackagesRequest asks which environment packages a peer keeps.
type PackagesRequest struct {
	Network CID
	// Manifest is the environment that is wanted; the zero CID asks for all.
	Manifest CID
	// MaxPackages is at most MaxPackageRecords.
	MaxPackages uint32
}

// PackagesResponse carries signed package statements as they were stored; the asker opens each.
type PackagesResponse struct{ Packages [][]byte }

// Validate returns a *ValidationError that names the first field at fault.
func (q BlockRequest) Validate() error {
	r := check("block request")
	r.require(len(q.CIDs) > 0, "cids", "must not be empty")
	r.atMost("cids", len(q.CIDs), MaxBlockRequestCIDs)
	for _, c := range q.CIDs {
		r.definedCID("cids", c)
	}
	return r.err
}

// Validate returns a *ValidationError that names the first field at fault.
func (h BlockHeader) Validate() error {
	r := check("block header")
	r.between("index", uint64(h.Index), 0, MaxBlockRequestCIDs-1)
	r.between("bytes", uint64(h.Bytes), 0, MaxBlockBytes)
	r.require(h.Found || h.Bytes == 0, "bytes", "must be 0 for a block that was not found")
	return r.err
}

// Validate returns a *ValidationError that names the first field at fault.
func (q HeadRequest) Validate() error {
	r := check("head request")
	r.definedCID("network", q.Network)
	r.between("max_releases", uint64(q.MaxReleases), 0, MaxHeadReleases)
	r.between("max_announcements", uint64(q.MaxAnnouncements), 0, MaxHeadAnnouncements)
	r.atMost("cursors", len(q.Cursors), MaxHeadCursors)
	for _, c := range q.Cursors {
		_, err := ParsePeerID([]byte(c.Peer))
		r.require(err == nil, "cursors", "must name peers with an ed25519 key inside")
	}
	return r.err
}

// Validate returns a *ValidationError that names the first field at fault.
func (a HeadResponse) Validate() error {
	r := check("head response")
	r.parts("releases", a.Releases, MaxHeadReleases, MaxGossipBytes)
	r.parts("announcements", a.Announcements, MaxHeadAnnouncements, MaxGossipBytes)
	return r.err
}

// Validate returns a *ValidationError that names the first field at fault.
func (q PeersRequest) Validate() error {
	r := check("peers request")
	r.definedCID("network", q.Network)
	r.between("max_peers", uint64(q.MaxPeers), 0, MaxPeerRecords)
	return r.err
}

// Validate returns a *ValidationError that names the first field at fault.
func (a PeersResponse) Validate() error {
	r := check("peers response")
	r.parts("records", a.Records, MaxPeerRecords, MaxPeerRecordBytes)
	return r.err
}

// Validate returns a *ValidationError that names the first field at fault.
func (q PackagesRequest) Validate() error {
	r := check("packages request")
	r.definedCID("network", q.Network)
	r.between("max_packages", uint64(q.MaxPackages), 0, MaxPackageRecords)
	return r.err
}

// Validate returns a *ValidationError that names the first field at fault.
func (a PackagesResponse) Validate() error {
	r := check("packages response")
	r.parts("packages", a.Packages, MaxPackageRecords, MaxGossipBytes)
	return r.err
}

// parts checks a list of embedded encodings that are opened one by one later.
func (r *rules) parts(field string, parts [][]byte, count, size int) {
	r.atMost(field, len(parts), count)
	for _, p := range parts {
		if len(p) == 0 || len(p) > size {
			r.fail(field, fmt.Sprintf("must have between 1 and %d bytes each", size))
			return
		}
	}
}

// EncodeBlockRequest validates q and encodes it.
func EncodeBlockRequest(q BlockRequest) ([]byte, error) {
	if err := q.Validate(); err != nil {
		return nil, err
	}
	m := &wirepb.BlockRequest{}
	for _, c := range q.CIDs {
		m.Cids = append(m.Cids, c.Bytes())
	}
	return marshal("block request", MaxBlockRequestBytes, m)
}

// DecodeBlockRequest decodes and validates a block request.
func DecodeBlockRequest(raw []byte) (BlockRequest, error) {
	var m wirepb.BlockRequest
	if err := unmarshal("block request", MaxBlockRequestBytes, raw, &m); err != nil {
		return BlockRequest{}, err
	}
	r := check("block request")
	r.atMost("cids", len(m.Cids), MaxBlockRequestCIDs)
	var q BlockRequest
	for _, b := range m.Cids {
		if r.err != nil {
			return BlockRequest{}, r.err
		}
		q.CIDs = append(q.CIDs, r.cid("cids", b))
	}
	if r.err != nil {
		return BlockRequest{}, r.err
	}
	return q, q.Validate()
}

// EncodeBlockHeader validates h and encodes it.
func EncodeBlockHeader(h BlockHeader) ([]byte, error) {
	if err := h.Validate(); err != nil {
		return nil, err
	}
	return marshal("block header", MaxBlockHeaderBytes, &wirepb.BlockHeader{Index: h.Index, Found: h.Found, Bytes: h.Bytes})
}

// DecodeBlockHeader decodes and validates a block header.
func DecodeBlockHeader(raw []byte) (BlockHeader, error) {
	var m wirepb.BlockHeader
	if err := unmarshal("block header", MaxBlockHeaderBytes, raw, &m); err != nil {
		return BlockHeader{}, err
	}
	h := BlockHeader{Index: m.Index, Found: m.Found, Bytes: m.Bytes}
	return h, h.Validate()
}

// EncodeHeadRequest validates q and encodes it.
func EncodeHeadRequest(q HeadRequest) ([]byte, error) {
	if err := q.Validate(); err != nil {
		return nil, err
	}
	m := &wirepb.HeadRequest{
		Network:          q.Network.Bytes(),
		ReleaseFrom:      q.ReleaseFrom,
		MaxReleases:      q.MaxReleases,
		MaxAnnouncements: q.MaxAnnouncements,
	}
	for _, c := range q.Cursors {
		m.Cursors = append(m.Cursors, &wirepb.Cursor{Peer: []byte(c.Peer), FromSequence: c.FromSequence})
	}
	return marshal("head request", MaxHeadRequestBytes, m)
}

// DecodeHeadRequest decodes and validates a head request.
func DecodeHeadRequest(raw []byte) (HeadRequest, error) {
	var m wirepb.HeadRequest
	if err := unmarshal("head request", MaxHeadRequestBytes, raw, &m); err != nil {
		return HeadRequest{}, err
	}
	r := check("head request")
	q := HeadRequest{
		Network:          r.cid("network", m.Network),
		ReleaseFrom:      m.ReleaseFrom,
		MaxReleases:      m.MaxReleases,
		MaxAnnouncements: m.MaxAnnouncements,
	}
	r.atMost("cursors", len(m.Cursors), MaxHeadCursors)
	for _, c := range m.Cursors {
		if r.err != nil {
			break
		}
		q.Cursors = append(q.Cursors, Cursor{Peer: r.peer("cursors", c.Peer), FromSequence: c.FromSequence})
	}
	if r.err != nil {
		return HeadRequest{}, r.err
	}
	return q, q.Validate()
}

// EncodeHeadResponse validates a and encodes it. It fails with ErrTooLarge above MaxHeadResponseBytes.
func EncodeHeadResponse(a HeadResponse) ([]byte, error) {
	if err := a.Validate(); err != nil {
		return nil, err
	}
	return marshal("head response", MaxHeadResponseBytes, &wirepb.HeadResponse{
		Releases:      a.Releases,
		Announcements: a.Announcements,
		HeadVersion:   a.HeadVersion,
		KnownNetwork:  a.KnownNetwork,
	})
}

// DecodeHeadResponse decodes and validates a head response; the Signed messages inside are not opened.
func DecodeHeadResponse(raw []byte) (HeadResponse, error) {
	var m wirepb.HeadResponse
	if err := unmarshal("head response", MaxHeadResponseBytes, raw, &m); err != nil {
		return HeadResponse{}, err
	}
	a := HeadResponse{
		Releases:      m.Releases,
		Announcements: m.Announcements,
		HeadVersion:   m.HeadVersion,
		KnownNetwork:  m.KnownNetwork,
	}
	return a, a.Validate()
}

// EncodePeersRequest validates q and encodes it.
func EncodePeersRequest(q PeersRequest) ([]byte, error) {
	if err := q.Validate(); err != nil {
		return nil, err
	}
	return marshal("peers request", MaxPeersRequestBytes, &wirepb.PeersRequest{Network: q.Network.Bytes(), MaxPeers: q.MaxPeers})
}

// DecodePeersRequest decodes and validates a peers request.
func DecodePeersRequest(raw []byte) (PeersRequest, error) {
	var m wirepb.PeersRequest
	if err := unmarshal("peers request", MaxPeersRequestBytes, raw, &m); err != nil {
		return PeersRequest{}, err
	}
	f := &fields{message: "peers request"}
	q := PeersRequest{Network: f.cid("network", m.Network), MaxPeers: m.MaxPeers}
	if f.err != nil {
		return PeersRequest{}, f.err
	}
	return q, q.Validate()
}

// EncodePeersResponse validates a and encodes it. It fails with ErrTooLarge above MaxPeersResponseBytes.
func EncodePeersResponse(a PeersResponse) ([]byte, error) {
	if err := a.Validate(); err != nil {
		return nil, err
	}
	return marshal("peers response", MaxPeersResponseBytes, &wirepb.PeersResponse{Records: a.Records})
}

// DecodePeersResponse decodes and validates a peers response; the records inside are not opened.
func DecodePeersResponse(raw []byte) (PeersResponse, error) {
	var m wirepb.PeersResponse
	if err := unmarshal("peers response", MaxPeersResponseBytes, raw, &m); err != nil {
		return PeersResponse{}, err
	}
	a := PeersResponse{Records: m.Records}
	return a, a.Validate()
}

// EncodePackagesRequest validates q and encodes it.
func EncodePackagesRequest(q PackagesRequest) ([]byte, error) {
	if err := q.Validate(); err != nil {
		return nil, err
	}
	m := &wirepb.PackagesRequest{Network: q.Network.Bytes(), MaxPackages: q.MaxPackages}
	if q.Manifest.Defined() {
		m.ManifestCid = q.Manifest.Bytes()
	}
	return marshal("packages request", MaxPackagesRequestBytes, m)
}

// DecodePackagesRequest decodes and validates a packages request.
func DecodePackagesRequest(raw []byte) (PackagesRequest, error) {
	var m wirepb.PackagesRequest
	if err := unmarshal("packages request", MaxPackagesRequestBytes, raw, &m); err != nil {
		return PackagesRequest{}, err
	}
	f := &fields{message: "packages request"}
	q := PackagesRequest{
		Network: f.cid("network", m.Network), Manifest: f.cid("manifest_cid", m.ManifestCid), MaxPackages: m.MaxPackages,
	}
	if f.err != nil {
		return PackagesRequest{}, f.err
	}
	return q, q.Validate()
}

// EncodePackagesResponse validates a and encodes it. It fails with ErrTooLarge above MaxPackagesResponseBytes.
func EncodePackagesResponse(a PackagesResponse) ([]byte, error) {
	if err := a.Validate(); err != nil {
		return nil, err
	}
	return marshal("packages response", MaxPackagesResponseBytes, &wirepb.PackagesResponse{Packages: a.Packages})
}

// DecodePackagesResponse decodes and validates a packages response; the Signed messages inside are not opened.
func DecodePackagesResponse(raw []byte) (PackagesResponse, error) {
	var m wirepb.PackagesResponse
	if err := unmarshal("packages response", MaxPackagesResponseBytes, raw, &m); err != nil {
		return PackagesResponse{}, err
	}
	a := PackagesResponse{Packages: m.Packages}
	return a, a.Validate()
}
