package p2p_test

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/lightswarm/lightswarm/p2p"
	"github.com/lightswarm/lightswarm/p2p/gossip"
	"github.com/lightswarm/lightswarm/p2p/simnet"
	"github.com/lightswarm/lightswarm/virtualtime"
	"github.com/lightswarm/lightswarm/wire"
)

// TestManyPeersBehindOneAddress has 40 peers connect from one IP address at once, where libp2p's own limits let 8 in.
func TestManyPeersBehindOneAddress(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		w := newWorld(t, 6)
		defer w.close()
		resources, err := p2p.NewResourceManager(p2p.DefaultTuning().PeersPerAddress)
		if err != nil {
			t.Fatal(err)
		}
		w.resources = map[int]network.ResourceManager{0: resources}
		learner := w.add()
		const clients = 40
		var dialling sync.WaitGroup
		var hosts []host.Host
		for i := range clients {
			h, err := w.net.Host(simnet.Key(60, i), netip.AddrPortFrom(simnet.Addr(77), uint16(9000+i)), 100, nil)
			if err != nil {
				t.Fatal(err)
			}
			hosts = append(hosts, h)
			dialling.Go(func() {
				info := peer.AddrInfo{ID: learner.Host().ID(), Addrs: learner.Host().Addrs()}
				if err := h.Connect(t.Context(), info); err != nil {
					t.Errorf("client %d: %v", i, err)
				}
			})
		}
		dialling.Wait()
		time.Sleep(time.Minute)
		connected := 0
		for _, h := range hosts {
			if learner.Host().Network().Connectedness(h.ID()) == network.Connected {
				connected++
			}
			if err := h.Close(); err != nil {
				t.Error(err)
			}
		}
		if connected != clients {
			t.Errorf("a minute later %d of %d clients behind one address are connected", connected, clients)
		}
	})
}

func TestPeersOfAnotherNetworkAreTurnedAway(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		w := newWorld(t, 7)
		defer w.close()
		learner := w.add()
		stranger := w.add(func(c *p2p.Config) { c.Network = wire.SumCID([]byte("another network")) })
		w.waitFor("one of them noticed", time.Minute, func() bool {
			return learner.Stats().Pull.OtherNetwork+stranger.Stats().Pull.OtherNetwork > 0
		})
		time.Sleep(30 * time.Second)
		if s := learner.Stats(); s.Members != 0 || s.Peers != 0 {
			t.Errorf("half a minute later %d peers are connected, %d as members", s.Peers, s.Members)
		}
	})
}

func TestPublishRefusesWhatOthersWould(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		w := newWorld(t, 8)
		defer w.close()
		n := w.add()
		for _, c := range []struct {
			name string
			raw  []byte
			want error
		}{
			{"too large", make([]byte, wire.MaxGossipBytes+1), wire.ErrTooLarge},
			{"junk", []byte("junk"), gossip.ErrRefused},
			{"for another network", signAnnouncement(t, n.key, wire.SumCID([]byte("another network")), 0, 0).Raw, gossip.ErrRefused},
			{"good, with nobody to hear it", signAnnouncement(t, n.key, w.network, 0, 0).Raw, gossip.ErrNobody},
		} {
			if err := n.PublishAnnouncement(t.Context(), c.raw); !errors.Is(err, c.want) {
				t.Errorf("%s: %v, want %v", c.name, err, c.want)
			}
		}
		if err := n.PublishRelease(t.Context(), signRelease(t, wire.NewKey(w.private(5)), w.network, 0).Raw); !errors.Is(err, gossip.ErrRefused) {
			t.Errorf("a release by somebody who is no learner: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		p, err := wire.SignPresence(n.key, wire.Presence{Network: w.network, Created: time.Now()})
		if err != nil {
			t.Fatal(err)
		}
		if err := n.PublishPresence(ctx, p.Raw); !errors.Is(err, context.Canceled) {
			t.Errorf("a cancelled publish: %v", err)
		}
	})
}

func TestConfigIsChecked(t *testing.T) {
	for name, spoil := range map[string]func(*p2p.Config){
		"the identity key": func(c *p2p.Config) { c.Key = nil },
		"the network id":   func(c *p2p.Config) { c.Network = wire.CID{} },
		"learners":         func(c *p2p.Config) { c.Learners = nil },
		"the block store":  func(c *p2p.Config) { c.Blocks = nil },
		"the head source":  func(c *p2p.Config) { c.Head = nil },
		"connection mark":  func(c *p2p.Config) { c.Tuning.ConnectionsLow = 1000 },
		"bootstrap":        func(c *p2p.Config) { c.Bootstrap = []string{"/ip4/1.2.3.4/tcp/1"} },
		"listen":           func(c *p2p.Config) { c.Listen = []string{"/ip4/300.0.0.1/tcp/1"} },
	} {
		cfg := tcpConfig(t, 1)
		spoil(&cfg)
		if _, err := p2p.New(t.Context(), cfg); err == nil {
			t.Errorf("a configuration without %s passed", name)
		}
	}
}
