package stream_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"

	"github.com/lightswarm/lightswarm/p2p/simnet"
	"github.com/lightswarm/lightswarm/p2p/stream"
)

// Peers that hold all streams half open make room for one that has none, and cannot get back what they lost.
func TestPeersShareStreams(t *testing.T) {
	simnet.Run(t, 5, 4, func(t *testing.T, hosts []host.Host) {
		const protocol = "/test/1"
		server := stream.Serve(hosts[0], protocol, stream.Limits{Total: 6, PerPeer: 4}, func(s network.Stream) error {
			if err := s.SetDeadline(time.Now().Add(time.Hour)); err != nil {
				return err
			}
			b := make([]byte, 1)
			for {
				if _, err := s.Read(b); err != nil {
					return err
				}
				if _, err := s.Write(b); err != nil {
					return err
				}
			}
		})
		defer server.Close()

		var opened [4][]network.Stream
		ping := func(s network.Stream) error {
			_, err := s.Write([]byte{1})
			if err == nil {
				_, err = s.Read(make([]byte, 1))
			}
			return err
		}
		open := func(i int) error {
			s, err := hosts[i].NewStream(t.Context(), hosts[0].ID(), protocol)
			if err == nil {
				err = ping(s)
			}
			if err == nil {
				opened[i] = append(opened[i], s)
			}
			return err
		}
		served := func() (text string) {
			for _, streams := range opened {
				n := 0
				for _, s := range streams {
					if ping(s) == nil {
						n++
					}
				}
				text += fmt.Sprint(n)
			}
			return text
		}
		for _, step := range []struct {
			peer int
			ok   bool
			want string // Streams served for each peer afterwards.
		}{
			{1, true, "0100"}, {1, true, "0200"}, {1, true, "0300"}, {1, true, "0400"},
			{1, false, "0400"}, // Its own limit.
			{2, true, "0410"}, {2, true, "0420"},
			{3, true, "0321"}, // Of peer 1, which has the most.
			{3, true, "0222"},
			{3, false, "0222"}, // All have the same.
			{1, false, "0222"},
		} {
			if err := open(step.peer); (err == nil) != step.ok {
				t.Fatalf("peer %d opens a stream: %v, want success %v", step.peer, err, step.ok)
			}
			if got := served(); got != step.want {
				t.Fatalf("after peer %d: %s streams are served, want %s", step.peer, got, step.want)
			}
		}
		if got := server.Refused(); got != 5 {
			t.Errorf("%d streams were refused or displaced, want 5", got)
		}
	})
}
