package node

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/lightswarm/lightswarm/p2p/discovery"
	"github.com/lightswarm/lightswarm/p2p/simnet"
	"github.com/lightswarm/lightswarm/virtualtime"
	"github.com/lightswarm/lightswarm/wire"
)

// Whoever waits for a member that is not there is told at once, and again and again.
func TestJoiningSaysWhatItWaitsFor(t *testing.T) {
	for name, c := range map[string]struct {
		bootstrap bool
		told      string
	}{
		"nobody answers":  {true, "a member did not send its charter"},
		"nobody is known": {false, "no member of the network was found yet"},
	} {
		t.Run(name, func(t *testing.T) {
			virtualtime.Test(t, func(t *testing.T) {
				net := simnet.New(20 * time.Millisecond)
				net.Start()
				t.Cleanup(net.Close)
				key := simnet.Key(1, 0)
				host, err := net.Host(key, netip.AddrPortFrom(simnet.Addr(0), 8000), 20, nil)
				if err != nil {
					t.Fatal(err)
				}
				defer host.Close()
				var sources []discovery.Source
				if c.bootstrap {
					absent := wire.NewKey(simnet.Key(1, 1)).Peer()
					address := fmt.Sprintf("/ip4/%s/udp/8000/quic-v1/p2p/%s", simnet.Addr(1), absent)
					found, err := discovery.ParseAddrs([]string{address})
					if err != nil {
						t.Fatal(err)
					}
					sources = append(sources, discovery.Bootstrap(found))
				}
				var log bytes.Buffer
				j := &joiner{
					host: host, network: wire.SumCID([]byte("charter")), sources: sources,
					log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})),
				}
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				if _, err := j.charter(ctx); err == nil {
					t.Error("a charter came from nowhere")
				}
				if n := strings.Count(log.String(), c.told); n < 5 || n > 25 {
					t.Errorf("said %d times in ten minutes:\n%s", n, log.String())
				}
			})
		})
	}
}

// Members that take a question and do not answer it do not keep a newcomer from the one that does.
func TestSilentMembersHoldUpNoNewcomer(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		net := simnet.New(20 * time.Millisecond)
		net.Start()
		t.Cleanup(net.Close)
		var addresses []peer.AddrInfo
		var hosts []host.Host
		for i := range 6 {
			h, err := net.Host(simnet.Key(1, i), netip.AddrPortFrom(simnet.Addr(i), 8000), 20, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer h.Close()
			hosts = append(hosts, h)
			addresses = append(addresses, peer.AddrInfo{ID: h.ID(), Addrs: h.Addrs()})
		}
		j := &joiner{
			host: hosts[0], network: wire.SumCID([]byte("network")), log: slog.New(slog.DiscardHandler),
			sources: []discovery.Source{discovery.Bootstrap(addresses[1:])},
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		honest := wire.PeerID(hosts[5].ID())
		got, err := ask(ctx, j, "a word", func(ctx context.Context, member wire.PeerID) (string, error) {
			if member == honest {
				return "word", nil
			}
			<-ctx.Done()
			return "", ctx.Err()
		})
		if got != "word" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	})
}
