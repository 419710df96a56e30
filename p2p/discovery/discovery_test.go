package discovery_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/event"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/record"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/lightswarm/lightswarm/p2p/discovery"
	"github.com/lightswarm/lightswarm/p2p/simnet"
	"github.com/lightswarm/lightswarm/virtualtime"
	"github.com/lightswarm/lightswarm/wire"
)

var (
	networkID = wire.SumCID([]byte("network"))
	quiet     = slog.New(slog.DiscardHandler)
)

// lan is a few hosts that are not connected, in virtual time.
type lan struct {
	t     *testing.T
	net   *simnet.Net
	hosts []host.Host
	stop  []func()
}

func newLAN(t *testing.T, hosts int) *lan {
	l := &lan{t: t, net: simnet.New(5 * time.Millisecond)}
	l.net.Start()
	for range hosts {
		l.add()
	}
	return l
}

func (l *lan) add() host.Host {
	i := len(l.hosts)
	h, err := l.net.Host(simnet.Key(11, i), netip.AddrPortFrom(simnet.Addr(i), 8000), 50, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	l.hosts = append(l.hosts, h)
	return h
}

// start runs f until the end of the test.
func (l *lan) start(f func(ctx context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	var ended sync.WaitGroup
	ended.Go(func() { f(ctx) })
	l.stop = append(l.stop, func() { cancel(); ended.Wait() })
}

func (l *lan) close() {
	for _, stop := range slices.Backward(l.stop) {
		stop()
	}
	for _, h := range l.hosts {
		if err := h.Close(); err != nil {
			l.t.Error(err)
		}
	}
	l.net.Close()
}

func (l *lan) info(i int) peer.AddrInfo {
	return peer.AddrInfo{ID: l.hosts[i].ID(), Addrs: l.hosts[i].Addrs()}
}

func (l *lan) connected(i, j int) bool {
	return l.hosts[i].Network().Connectedness(l.hosts[j].ID()) == network.Connected
}

// dialer runs a dialer on host 0.
func (l *lan) dialer(want int, keep ...int) *discovery.Dialer {
	var kept []peer.ID
	for _, i := range keep {
		kept = append(kept, l.hosts[i].ID())
	}
	members := func() int { return len(l.hosts[0].Network().Peers()) }
	d := discovery.NewDialer(l.hosts[0], kept, members, want, rand.New(rand.NewPCG(1, 2)), quiet)
	l.start(d.Run)
	return d
}

func TestDialerKeepsAndFillsUp(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		l := newLAN(t, 12)
		defer l.close()
		d := l.dialer(4, 1)
		for i := range 12 {
			d.Found(l.info(i))
		}
		time.Sleep(time.Minute)
		if n := len(l.hosts[0].Network().Peers()); !l.connected(0, 1) || n < 4 || n > 5 {
			t.Fatalf("%d connections, the kept one among them: %v", n, l.connected(0, 1))
		}
		for _, p := range l.hosts[0].Network().Peers() {
			if err := l.hosts[0].Network().ClosePeer(p); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		if n := len(l.hosts[0].Network().Peers()); !l.connected(0, 1) || n < 4 {
			t.Errorf("after all were closed: %d connections, the kept one among them: %v", n, l.connected(0, 1))
		}
	})
}

func TestDialerComesBackToAKeptPeer(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		l := newLAN(t, 2)
		defer l.close()
		l.net.Partition([]netip.Addr{simnet.Addr(1)})
		l.dialer(0, 1).Found(l.info(1))
		time.Sleep(3 * time.Hour) // Any back-off has reached its end.
		if l.connected(0, 1) {
			t.Fatal("connected across a partition")
		}
		l.net.Heal()
		time.Sleep(2 * time.Minute)
		if !l.connected(0, 1) {
			t.Error("two minutes after the partition healed the kept peer is not connected")
		}
	})
}

func TestDialerLeavesRefusedPeersAlone(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		l := newLAN(t, 2)
		defer l.close()
		d := l.dialer(4)
		d.Found(l.info(1))
		time.Sleep(5 * time.Second)
		if !l.connected(0, 1) {
			t.Fatal("not connected")
		}
		d.Refuse(l.hosts[1].ID())
		for range 10 {
			time.Sleep(time.Minute)
			d.Found(l.info(1))
			if l.connected(0, 1) {
				t.Fatal("a refused peer was dialled")
			}
		}
	})
}

// roster keeps the signed records that come in the identify exchange.
func (l *lan) roster(i int) func(peer.ID) []byte {
	sub, err := l.hosts[i].EventBus().Subscribe(new(event.EvtPeerIdentificationCompleted))
	if err != nil {
		l.t.Fatal(err)
	}
	var mu sync.Mutex
	records := make(map[peer.ID][]byte)
	l.start(func(ctx context.Context) {
		defer sub.Close()
		for {
			select {
			case e := <-sub.Out():
				e2 := e.(event.EvtPeerIdentificationCompleted)
				if raw, err := e2.SignedPeerRecord.Marshal(); err == nil {
					mu.Lock()
					records[e2.Peer] = raw
					mu.Unlock()
				}
			case <-ctx.Done():
				return
			}
		}
	})
	return func(p peer.ID) []byte {
		mu.Lock()
		defer mu.Unlock()
		return records[p]
	}
}

func (l *lan) exchange(i int, network wire.CID, record func(peer.ID) []byte) *discovery.Exchange {
	members := func() int { return len(l.hosts[i].Network().Peers()) }
	x := discovery.NewExchange(l.hosts[i], network, record, members, 4, rand.New(rand.NewPCG(3, uint64(i))))
	l.stop = append(l.stop, x.Close)
	return x
}

func (l *lan) connect(i, j int) {
	if err := l.hosts[i].Connect(l.t.Context(), l.info(j)); err != nil {
		l.t.Fatal(err)
	}
	synctest.Wait()
}

func TestPeersAreExchanged(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		l := newLAN(t, 6)
		defer l.close()
		record := l.roster(1)
		outsider := l.hosts[5].ID()
		l.exchange(1, networkID, func(p peer.ID) []byte {
			if p == outsider {
				return nil
			}
			return record(p)
		})
		for _, i := range []int{0, 2, 3, 5} {
			l.connect(i, 1)
		}
		asker := l.exchange(0, networkID, nil)
		infos, err := asker.Ask(t.Context(), l.hosts[1].ID())
		if err != nil {
			t.Fatal(err)
		}
		got := make(map[peer.ID]string)
		for _, info := range infos {
			got[info.ID] = info.Addrs[0].String()
		}
		want := map[peer.ID]string{
			l.hosts[2].ID(): l.hosts[2].Addrs()[0].String(), l.hosts[3].ID(): l.hosts[3].Addrs()[0].String(),
		}
		if len(got) != 2 || got[l.hosts[2].ID()] != want[l.hosts[2].ID()] || got[l.hosts[3].ID()] != want[l.hosts[3].ID()] {
			t.Errorf("got %v, want the two other members %v", got, want)
		}

		other := l.exchange(4, wire.SumCID([]byte("other network")), nil)
		l.connect(4, 1)
		if infos, err := other.Ask(t.Context(), l.hosts[1].ID()); err != nil || len(infos) > 0 {
			t.Errorf("a peer of another network was told of %v, %v", infos, err)
		}
	})
}

func TestExchangeAndDialerSpreadFromOneBootstrap(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		l := newLAN(t, 3)
		defer l.close()
		l.exchange(0, networkID, l.roster(0))
		l.connect(1, 0)
		l.connect(2, 0)
		members := func() int { return len(l.hosts[2].Network().Peers()) }
		d := discovery.NewDialer(l.hosts[2], nil, members, 4, rand.New(rand.NewPCG(1, 2)), quiet)
		l.start(d.Run)
		sources := []discovery.Source{broken{}, discovery.Bootstrap{l.info(0)}, l.exchange(2, networkID, nil)}
		l.start(func(ctx context.Context) { discovery.Run(ctx, sources, d.Found, quiet) })
		time.Sleep(time.Minute)
		if !l.connected(2, 1) {
			t.Error("a member did not find another through the one that they both know")
		}
	})
}

// broken is a source that cannot work.
type broken struct{}

func (broken) Name() string { return "broken" }
func (broken) Run(context.Context, func(peer.AddrInfo)) error {
	return errors.New("no such thing here")
}

// memoryCache is a peer cache in memory.
type memoryCache struct {
	mu    sync.Mutex
	infos []peer.AddrInfo // guarded by mu
}

func (c *memoryCache) Load() ([]peer.AddrInfo, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.infos, nil
}

func (c *memoryCache) Save(infos []peer.AddrInfo) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.infos = infos
	return nil
}

func TestPeersAreCached(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		l := newLAN(t, 3)
		defer l.close()
		l.connect(0, 1)
		l.connect(0, 2)
		cache := &memoryCache{infos: []peer.AddrInfo{l.info(2)}}
		stranger := l.hosts[2].ID()
		source := &discovery.Cached{Host: l.hosts[0], Cache: cache, Member: func(p peer.ID) bool { return p != stranger }}
		ctx, cancel := context.WithCancel(t.Context())
		var found []peer.ID
		ended := make(chan error)
		go func() { ended <- source.Run(ctx, func(info peer.AddrInfo) { found = append(found, info.ID) }) }()
		synctest.Wait()
		cancel()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if len(found) != 1 || found[0] != stranger {
			t.Errorf("reported %v, want what the cache had", found)
		}
		if len(cache.infos) != 1 || cache.infos[0].ID != l.hosts[1].ID() || len(cache.infos[0].Addrs) == 0 {
			t.Errorf("cached %v, want the one member", cache.infos)
		}
	})
}

// A node that is killed early has saved whom it met, and has not forgotten whom it was yet to meet again.
func TestPeersAreCachedSoon(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		l := newLAN(t, 3)
		defer l.close()
		cache := &memoryCache{infos: []peer.AddrInfo{l.info(2)}}
		source := &discovery.Cached{Host: l.hosts[0], Cache: cache, Member: func(peer.ID) bool { return true }}
		l.start(func(ctx context.Context) {
			if err := source.Run(ctx, func(peer.AddrInfo) {}); err != nil {
				t.Error(err)
			}
		})
		cached := func() []peer.ID {
			synctest.Wait()
			infos, _ := cache.Load()
			var ids []peer.ID
			for _, info := range infos {
				ids = append(ids, info.ID)
			}
			return ids
		}
		time.Sleep(5 * time.Minute)
		l.connect(0, 1)
		time.Sleep(5 * time.Second)
		if got, want := cached(), []peer.ID{l.hosts[1].ID(), l.hosts[2].ID()}; !slices.Equal(got, want) {
			t.Errorf("after seconds: %v, want %v", got, want)
		}
		time.Sleep(10 * time.Minute)
		if got, want := cached(), []peer.ID{l.hosts[1].ID()}; !slices.Equal(got, want) {
			t.Errorf("after minutes: %v, want %v", got, want)
		}
	})
}

// However many peers somebody makes up, a newcomer is remembered, and so is a peer that was reached before.
func TestDialerRemembersNewcomers(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		l := newLAN(t, 3)
		defer l.close()
		d := l.dialer(1)
		d.Found(l.info(1))
		time.Sleep(5 * time.Second)
		if !l.connected(0, 1) {
			t.Fatal("not connected")
		}
		if err := l.hosts[0].Network().ClosePeer(l.hosts[1].ID()); err != nil {
			t.Fatal(err)
		}
		for i := range 2 * discovery.MaxCandidates {
			d.Found(peer.AddrInfo{ID: peer.ID(fmt.Sprint("made up ", i)), Addrs: l.hosts[2].Addrs()})
		}
		d.Found(l.info(2))
		if !d.Knows(l.hosts[2].ID()) || !d.Knows(l.hosts[1].ID()) {
			t.Errorf("the newcomer is known: %v, the peer from before: %v", d.Knows(l.hosts[2].ID()), d.Knows(l.hosts[1].ID()))
		}
	})
}

func TestParseAddrs(t *testing.T) {
	id := wire.NewKey(simnet.Key(1, 0)).Peer().String()
	infos, err := discovery.ParseAddrs([]string{"/ip4/1.2.3.4/tcp/4001/p2p/" + id, "/ip4/1.2.3.4/udp/4001/quic-v1/p2p/" + id})
	if err != nil || len(infos) != 1 || len(infos[0].Addrs) != 2 {
		t.Errorf("%v, %v", infos, err)
	}
	for addr, want := range map[string]string{
		"/ip4/1.2.3.4/tcp/4001": "must end in /p2p/<peer id>",
		"1.2.3.4:4001":          "address \"1.2.3.4:4001\"",
	} {
		if _, err := discovery.ParseAddrs([]string{addr}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", addr, err, want)
		}
	}
}

// sealed returns an encoded record that speaks of one key's peer and is signed by another's.
func sealed(t testing.TB, of, by int) []byte {
	t.Helper()
	key := func(n int) crypto.PrivKey {
		k, err := crypto.UnmarshalEd25519PrivateKey(simnet.Key(1, n))
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	id, err := peer.IDFromPrivateKey(key(of))
	if err != nil {
		t.Fatal(err)
	}
	addr := ma.StringCast("/ip4/1.2.3.4/tcp/4001")
	envelope, err := record.Seal(peer.PeerRecordFromAddrInfo(peer.AddrInfo{ID: id, Addrs: []ma.Multiaddr{addr}}), key(by))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := envelope.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func response(t testing.TB, records ...[]byte) []byte {
	t.Helper()
	raw, err := wire.EncodePeersResponse(wire.PeersResponse{Records: records})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestRecordsAreVerified(t *testing.T) {
	good := sealed(t, 1, 1)
	flipped := slices.Clone(good)
	flipped[len(flipped)-1] ^= 1
	for _, c := range []struct {
		name string
		raw  []byte
		ok   bool
	}{
		{"a good one", response(t, good), true},
		{"none", response(t), true},
		{"one about another peer", response(t, good, sealed(t, 1, 2)), false},
		{"a wrong signature", response(t, flipped), false},
		{"junk", response(t, []byte("junk")), false},
	} {
		if _, err := discovery.OpenRecords(c.raw); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// FuzzOpenRecords opens any bytes: what passes was signed by the peer that it speaks of, and there is a limit to it.
func FuzzOpenRecords(f *testing.F) {
	f.Add(response(f, sealed(f, 1, 1), sealed(f, 2, 2)))
	f.Add(response(f, sealed(f, 1, 2)))
	f.Add([]byte{0x0a, 0x02, 0x0a, 0x00})
	f.Fuzz(func(t *testing.T, raw []byte) {
		infos, err := discovery.OpenRecords(raw)
		if err == nil && len(infos) > wire.MaxPeerRecords {
			t.Fatalf("%d records passed", len(infos))
		}
		for _, info := range infos {
			if err := info.ID.Validate(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestPrivateAddressesFromAfarAreLeftOut(t *testing.T) {
	info := peer.AddrInfo{ID: "p", Addrs: []ma.Multiaddr{
		ma.StringCast("/ip4/192.168.1.2/tcp/1"), ma.StringCast("/ip4/8.8.8.8/tcp/1"), ma.StringCast("/ip4/127.0.0.1/tcp/1"),
	}}
	for via, want := range map[string]int{"/ip4/8.8.4.4/tcp/1": 1, "/ip4/192.168.1.9/tcp/1": 3, "/ip4/127.0.0.1/tcp/1": 3} {
		got := discovery.Reachable([]peer.AddrInfo{{ID: info.ID, Addrs: slices.Clone(info.Addrs)}}, ma.StringCast(via))
		if len(got) != 1 || len(got[0].Addrs) != want {
			t.Errorf("via %s: %v, want %d addresses", via, got, want)
		}
	}
}
