package head

import (
	"bufio"
	"bytes"
	"testing"
	"time"

	"github.com/lightswarm/lightswarm/p2p/stream"
	"github.com/lightswarm/lightswarm/wire"
)

// script is a stream whose peer sends fixed bytes and reads everything.
type script struct {
	*bytes.Reader
	written bytes.Buffer
}

func (s *script) Write(b []byte) (int, error) { return s.written.Write(b) }
func (*script) SetDeadline(time.Time) error   { return nil }

// endless is a source that always has more.
type endless struct{}

func (endless) Releases(_ uint64, most int) ([][]byte, error) {
	return bytes.Split(bytes.Repeat([]byte("r"), most), nil), nil
}
func (endless) Announcements(_ wire.PeerID, _ uint64, most int) ([][]byte, error) {
	return bytes.Split(bytes.Repeat([]byte("a"), most), nil), nil
}
func (endless) Head() uint64 { return 1 << 60 }

// FuzzServe sends a server any bytes: every answer that it gives is valid and within the request's limits.
func FuzzServe(f *testing.F) {
	network := wire.SumCID([]byte("network"))
	request := func(q wire.HeadRequest) []byte {
		raw, err := wire.EncodeHeadRequest(q)
		if err != nil {
			f.Fatal(err)
		}
		return stream.AppendFrame(nil, raw)
	}
	f.Add(request(wire.HeadRequest{Network: network, MaxReleases: 3, MaxAnnouncements: 5}))
	f.Add(request(wire.HeadRequest{Network: network, ReleaseFrom: 1 << 63, MaxReleases: 256, MaxAnnouncements: 1024}))
	f.Add(request(wire.HeadRequest{Network: wire.SumCID([]byte("other")), MaxReleases: 3}))
	f.Add([]byte{0, 0, 0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, sent []byte) {
		st := &script{Reader: bytes.NewReader(sent)}
		// The error is for the peer, which is reset; what matters is what was written before.
		_ = answerer{network: network, source: endless{}}.handle(st)
		answers := bufio.NewReader(&st.written)
		asked := bufio.NewReader(bytes.NewReader(sent))
		for {
			raw, err := stream.ReadFrame(answers, wire.MaxHeadResponseBytes)
			if err != nil {
				return
			}
			response, err := wire.DecodeHeadResponse(raw)
			if err != nil {
				t.Fatalf("the server sent what is not valid: %v", err)
			}
			question, err := stream.ReadFrame(asked, wire.MaxHeadRequestBytes)
			if err != nil {
				t.Fatal("the server answered what was not asked")
			}
			q, err := wire.DecodeHeadRequest(question)
			if err != nil {
				t.Fatal("the server answered what is not valid")
			}
			if len(response.Releases) > int(q.MaxReleases) || len(response.Announcements) > int(q.MaxAnnouncements) {
				t.Fatal("the server answered with more than was asked for")
			}
			if response.KnownNetwork != (q.Network == network) {
				t.Fatal("the server answered for another network")
			}
		}
	})
}
