package head_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"

	"github.com/lightswarm/lightswarm/p2p/head"
	"github.com/lightswarm/lightswarm/p2p/simnet"
	"github.com/lightswarm/lightswarm/wire"
)

// numbered is a source whose records are texts with their number, size bytes long.
type numbered struct {
	releases, announcements uint64
	size                    int
	err                     error
}

func (n numbered) record(kind string, i uint64) []byte {
	return fmt.Appendf(nil, "%-*s", n.size, fmt.Sprintf("%s %d", kind, i))
}

func (n numbered) Releases(from uint64, most int) (out [][]byte, err error) {
	for i := from; i < n.releases && len(out) < most; i++ {
		out = append(out, n.record("release", i))
	}
	return out, n.err
}

func (n numbered) Announcements(p wire.PeerID, from uint64, most int) (out [][]byte, err error) {
	for i := from; i < n.announcements && len(out) < most; i++ {
		out = append(out, n.record(p.Short(), i))
	}
	return out, n.err
}

func (n numbered) Head() uint64 { return n.releases - 1 }

var (
	networkID = wire.SumCID([]byte("network"))
	keyA      = wire.NewKey(simnet.Key(3, 0))
	keyB      = wire.NewKey(simnet.Key(3, 1))
	keyC      = wire.NewKey(simnet.Key(3, 2))
)

// between runs a test with a session from host 0 to host 1, which answers from a source.
func between(t *testing.T, source head.Source, test func(t *testing.T, hosts []host.Host, s *head.Session)) {
	simnet.Run(t, 3, 2, func(t *testing.T, hosts []host.Host) {
		server := head.Serve(hosts[1], networkID, source)
		defer server.Close()
		s, err := head.Open(t.Context(), hosts[0], hosts[1].ID())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		test(t, hosts, s)
	})
}

func TestAnswersFollowTheRequest(t *testing.T) {
	between(t, numbered{releases: 10, announcements: 5, size: 100}, func(t *testing.T, _ []host.Host, s *head.Session) {
		for _, c := range []struct {
			name                    string
			request                 wire.HeadRequest
			releases, announcements int
			first                   string // First announcement.
		}{
			{"nothing", wire.HeadRequest{}, 0, 0, ""},
			{"releases", wire.HeadRequest{ReleaseFrom: 7, MaxReleases: 64}, 3, 0, ""},
			{"a few releases", wire.HeadRequest{ReleaseFrom: 2, MaxReleases: 4}, 4, 0, ""},
			{"releases to come", wire.HeadRequest{ReleaseFrom: 10, MaxReleases: 64}, 0, 0, ""},
			{"its own announcements", wire.HeadRequest{MaxAnnouncements: 100}, 0, 5, keyB.Peer().Short() + " 0"},
			{"two authors", wire.HeadRequest{
				Cursors:          []wire.Cursor{{Peer: keyC.Peer(), FromSequence: 3}, {Peer: keyA.Peer(), FromSequence: 1}},
				MaxAnnouncements: 100,
			}, 0, 6, keyC.Peer().Short() + " 3"},
			{"two authors and little room", wire.HeadRequest{
				Cursors:          []wire.Cursor{{Peer: keyC.Peer()}, {Peer: keyA.Peer()}},
				MaxAnnouncements: 7,
			}, 0, 7, keyC.Peer().Short() + " 0"},
		} {
			c.request.Network = networkID
			got, err := s.Ask(t.Context(), c.request)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			if len(got.Releases) != c.releases || len(got.Announcements) != c.announcements || got.HeadVersion != 9 {
				t.Errorf("%s: %d releases, %d announcements, head %d", c.name, len(got.Releases), len(got.Announcements), got.HeadVersion)
			}
			if c.first != "" && string(got.Announcements[0][:len(c.first)]) != c.first {
				t.Errorf("%s: the first announcement is %q, want %q", c.name, got.Announcements[0], c.first)
			}
			if full := c.name == "two authors and little room" || c.request.MaxAnnouncements == 0; head.Full(c.request, got) != full {
				t.Errorf("%s: full is %v", c.name, !full)
			}
		}
	})
}

// TestAnswersFitTheirLimit asks for more than fits and pages through it.
func TestAnswersFitTheirLimit(t *testing.T) {
	between(t, numbered{releases: 100, announcements: 2000, size: 2000}, func(t *testing.T, _ []host.Host, s *head.Session) {
		request := wire.HeadRequest{Network: networkID, MaxReleases: 256, MaxAnnouncements: 1024, Cursors: []wire.Cursor{{Peer: keyB.Peer()}}}
		pages := 0
		for {
			got, err := s.Ask(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			pages++
			request.MaxReleases = 0
			request.Cursors[0].FromSequence += uint64(len(got.Announcements))
			if !head.Full(request, got) {
				break
			}
		}
		if request.Cursors[0].FromSequence != 2000 || pages != 5 {
			t.Errorf("%d announcements on %d pages, want 2000 on 5 of 1 MiB", request.Cursors[0].FromSequence, pages)
		}
	})
}

func TestAskFailsClearly(t *testing.T) {
	request := wire.HeadRequest{Network: networkID, MaxReleases: 1}
	between(t, numbered{releases: 1, size: 10}, func(t *testing.T, _ []host.Host, s *head.Session) {
		if _, err := s.Ask(t.Context(), wire.HeadRequest{Network: wire.SumCID([]byte("other"))}); !errors.Is(err, head.ErrOtherNetwork) {
			t.Errorf("another network: %v", err)
		}
	})
	between(t, numbered{releases: 1, size: 10, err: errors.New("disk on fire")}, func(t *testing.T, _ []host.Host, s *head.Session) {
		if _, err := s.Ask(t.Context(), request); err == nil {
			t.Error("an answer came from a source that failed")
		}
	})
	between(t, numbered{releases: 1, size: 10}, func(t *testing.T, _ []host.Host, s *head.Session) {
		for range head.MaxRequests {
			if _, err := s.Ask(t.Context(), request); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.Ask(t.Context(), request); err == nil {
			t.Error("a stream answered more than MaxRequests requests")
		}
	})
	between(t, numbered{releases: 1, size: 10}, func(t *testing.T, hosts []host.Host, _ *head.Session) {
		hosts[1].SetStreamHandler(head.Protocol, func(s network.Stream) { // Never answers.
			_, _ = s.Read(make([]byte, 1000))
			_, _ = s.Read(make([]byte, 1000))
		})
		s, err := head.Open(t.Context(), hosts[0], hosts[1].ID())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		start := time.Now()
		if _, err := s.Ask(t.Context(), request); err == nil || time.Since(start) > time.Minute {
			t.Errorf("a silent peer: %v after %s", err, time.Since(start))
		}
	})
}
