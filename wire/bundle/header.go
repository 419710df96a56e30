package bundle

import (
	"encoding/binary"
	"fmt"
	"io"

	"google.golang.org/protobuf/proto"

	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/wirepb"
)

const (
	// magic starts every bundle file.
	magic = "LSWB"
	// major changes when an older reader would misread; minor when it would only miss something.
	major = 1
	minor = 0
	// maxHeaderBytes bounds the encoded header; fields of today need at most 400 bytes.
	maxHeaderBytes = 4 << 10
)

// appendHeader writes the file's start: magic, major, minor, the header's length in two bytes, the header.
func appendHeader(dst []byte, b *Bundle, form wirepb.LogProbForm, columnsBytes int) ([]byte, error) {
	h := &wirepb.BundleHeader{
		Network:        b.Network.Bytes(),
		Purpose:        wirepb.Purpose(b.Purpose),
		EnvironmentCid: b.Environment.Bytes(),
		Split:          b.Split,
		PolicyVersion:  b.PolicyVersion,
		PolicyDigest:   b.PolicyDigest[:],
		Peer:           []byte(b.Peer),
		Counter:        b.Counter,
		Sampling: &wirepb.Sampling{
			Temperature: b.Sampling.Temperature,
			TopK:        b.Sampling.TopK,
			TopP:        b.Sampling.TopP,
		},
		MaxCompletionTokens: b.MaxCompletionTokens,
		Engine:              wirepb.EngineClass(b.Engine),
		Rollouts:            uint32(len(b.Rollouts)),
		ColumnsBytes:        uint32(columnsBytes),
		LogProbForm:         form,
	}
	encoded, err := proto.MarshalOptions{Deterministic: true}.Marshal(h)
	if err != nil {
		return nil, fmt.Errorf("encode bundle header: %w", err)
	}
	dst = append(dst, magic...)
	dst = append(dst, major, minor)
	dst = binary.LittleEndian.AppendUint16(dst, uint16(len(encoded)))
	return append(dst, encoded...), nil
}

// readHeader reads what appendHeader wrote and returns the bundle without rollouts, validated.
func readHeader(r *boundedReader) (*Bundle, *wirepb.BundleHeader, error) {
	start := make([]byte, len(magic)+4)
	if err := r.full(start); err != nil {
		return nil, nil, err
	}
	if string(start[:len(magic)]) != magic {
		return nil, nil, malformed("it does not start like a bundle")
	}
	if start[len(magic)] != major {
		if start[len(magic)] > major {
			return nil, nil, fmt.Errorf("bundle: %w: it has format %d and this program reads %d; upgrade lightswarm on this machine",
				wire.ErrNewerMajor, start[len(magic)], major)
		}
		return nil, nil, malformed("its format was never published")
	}
	length := int(binary.LittleEndian.Uint16(start[len(magic)+2:]))
	if length > maxHeaderBytes {
		return nil, nil, tooLarge("bytes of header are", length, maxHeaderBytes)
	}
	encoded := make([]byte, length)
	if err := r.full(encoded); err != nil {
		return nil, nil, err
	}
	h := new(wirepb.BundleHeader)
	if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(encoded, h); err != nil {
		return nil, nil, fmt.Errorf("decode bundle header: %w: %w", wire.ErrMalformed, err)
	}
	b, err := bundleOf(h)
	return b, h, err
}

func bundleOf(h *wirepb.BundleHeader) (*Bundle, error) {
	b := &Bundle{
		Split:         h.Split,
		PolicyVersion: h.PolicyVersion,
		Peer:          wire.PeerID(h.Peer),
		Counter:       h.Counter,
		Sampling: wire.Sampling{
			Temperature: h.GetSampling().GetTemperature(),
			TopK:        h.GetSampling().GetTopK(),
			TopP:        h.GetSampling().GetTopP(),
		},
		MaxCompletionTokens: h.MaxCompletionTokens,
	}
	var err error
	if b.Network, err = wire.ParseCID(h.Network); err != nil {
		return nil, invalid("network", "must be a CID")
	}
	if b.Environment, err = wire.ParseCID(h.EnvironmentCid); err != nil {
		return nil, invalid("environment_cid", "must be a CID")
	}
	if len(h.PolicyDigest) != len(b.PolicyDigest) {
		return nil, invalid("policy_digest", "must be a digest of 32 bytes")
	}
	copy(b.PolicyDigest[:], h.PolicyDigest)
	// The enums are wider than Go's types: cut nothing off.
	if h.Purpose >= 0 && h.Purpose <= wirepb.Purpose_PURPOSE_EVALUATE_GREEDY {
		b.Purpose = wire.Purpose(h.Purpose)
	}
	if h.Engine >= 0 && h.Engine <= wirepb.EngineClass_ENGINE_CLASS_APPROXIMATE {
		b.Engine = EngineClass(h.Engine)
	}
	if h.LogProbForm != formGrid && h.LogProbForm != formFloat32 {
		return nil, invalid("log_prob_form", "is unknown to this version of lightswarm")
	}
	if h.Rollouts == 0 {
		return nil, invalid("rollouts", "must be at least 1")
	}
	return b, b.validateHeader()
}

// boundedReader refuses to read more than a limit, and calls an early end malformed.
type boundedReader struct {
	r           io.Reader
	left, limit int
}

// full fills p.
func (r *boundedReader) full(p []byte) error {
	if len(p) > r.left {
		return tooLarge("bytes are at least", r.limit-r.left+len(p), r.limit)
	}
	n, err := io.ReadFull(r.r, p)
	r.left -= n
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return malformed("it ends early")
	}
	return err
}

// end makes sure that nothing follows.
func (r *boundedReader) end() error {
	var b [1]byte
	switch _, err := io.ReadFull(r.r, b[:]); err {
	case io.EOF:
		return nil
	case nil:
		return malformed("bytes follow its end")
	default:
		return err
	}
}
