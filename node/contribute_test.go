package node

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/lightswarm/lightswarm/node/api"
	"github.com/lightswarm/lightswarm/node/config"
	"github.com/lightswarm/lightswarm/p2p/block"
	"github.com/lightswarm/lightswarm/p2p/packages"
	"github.com/lightswarm/lightswarm/p2p/simnet"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/pack"
	"github.com/lightswarm/lightswarm/virtualtime"
	"github.com/lightswarm/lightswarm/wire"
)

// aPackage is a small package that somebody signed.
func aPackage(t *testing.T, author int, content string) pack.File {
	t.Helper()
	p, err := env.NewPackage(wire.EnvironmentManifest{
		Name: "words", Version: "1.0.0", Licence: "MIT", Kind: "wasm", Entry: "a.wasm",
		Splits:    []wire.Split{{Name: wire.SplitTrain, Tasks: 1}},
		RewardMin: 0, RewardMax: 1, Determinism: wire.DeterminismExact, Agents: []string{"solver"},
	}, map[string][]byte{"a.wasm": []byte(content)})
	if err != nil {
		t.Fatal(err)
	}
	f, err := pack.Sign(p, wire.NewKey(simnet.Key(8, author)), time.UnixMilli(1))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func refusedAs(t *testing.T, err error, code string) {
	t.Helper()
	var refused *api.Error
	if !errors.As(err, &refused) || refused.Code != code {
		t.Errorf("%v, want %s", err, code)
	}
}

// A node serves what it was given to whoever asks, a version stays what it is, and what is dropped is served no more.
func TestPackagesAreSharedAndDropped(t *testing.T) {
	t.Parallel()
	o := options(t, settings(config.RoleLearner))
	o.Found = parityNetwork(t)
	founder := start(t, o)
	volunteer := start(t, join(t, founder, config.RoleRollout))
	volunteer.until("the founder is a member", func() bool { return volunteer.Status().Connected == 1 })

	f := aPackage(t, 0, "module")
	cid := f.CID().String()
	kept, err := founder.KeepEnvironment(t.Context(), f.Encode())
	if err != nil || kept.CID != cid || !kept.Kept || kept.Reference != f.Statement.Reference() {
		t.Fatalf("%+v, %v", kept, err)
	}
	_, err = founder.KeepEnvironment(t.Context(), f.Encode())
	if err != nil {
		t.Errorf("the same again: %v", err)
	}
	_, err = founder.KeepEnvironment(t.Context(), aPackage(t, 0, "other").Encode())
	refusedAs(t, err, "conflict")
	_, err = founder.KeepEnvironment(t.Context(), pack.File{Package: f.Package}.Encode())
	refusedAs(t, err, "bad_request")
	_, err = founder.KeepEnvironment(t.Context(), []byte("junk"))
	refusedAs(t, err, "bad_request")
	if _, err = founder.KeepEnvironment(t.Context(), aPackage(t, 1, "other").Encode()); err != nil {
		t.Errorf("another author's package of the same name: %v", err)
	}

	list, err := volunteer.Environments(t.Context(), "", false)
	if err != nil || len(list) != 2 {
		t.Errorf("%+v, %v", list, err)
	}
	list, err = volunteer.Environments(t.Context(), cid, false)
	if err != nil || len(list) != 1 || list[0].Kept || len(list[0].Holders) != 1 || list[0].Holders[0] != founder.Peer().String() {
		t.Fatalf("%+v, %v", list, err)
	}
	got, err := env.AssemblePackage(t.Context(), f.CID(), func(_ context.Context, cid wire.CID) ([]byte, error) {
		return volunteer.Block(t.Context(), cid.String(), list[0].Holders)
	})
	if err != nil || !bytes.Equal(got.Encoded(), f.Encoded()) {
		t.Fatal(err)
	}
	if err := founder.DropEnvironment(cid); err != nil {
		t.Error(err)
	}
	refusedAs(t, founder.DropEnvironment(cid), "not_found")
	refusedAs(t, founder.DropEnvironment("words"), "bad_request")
	if list, err = volunteer.Environments(t.Context(), cid, false); err != nil || len(list) != 0 {
		t.Errorf("%+v, %v", list, err)
	}
	_, err = volunteer.Environments(t.Context(), "words", false)
	refusedAs(t, err, "bad_request")
}

// A member that names packages without end, and one that sends other bytes than a CID's, cost whoever asks nothing but the
// answer: what an honest member keeps is found and fetched all the same.
func TestPackagesAmongHostileMembers(t *testing.T) {
	t.Parallel()
	warmUp(t)
	virtualtime.Test(t, func(t *testing.T) {
		net := simnet.New(20 * time.Millisecond)
		net.Start()
		t.Cleanup(net.Close)
		o := simulated(t, net, 0, config.RoleLearner)
		o.Found = parityNetwork(t)
		founder := start(t, o)
		var relays []*running
		for i := range 3 {
			o := simulated(t, net, i+1, config.RoleRelay)
			o.Config.Network, o.Config.P2P.Bootstrap = founder.Charter().ID.String(), founder.Addresses()
			relays = append(relays, start(t, o))
		}
		asker := relays[0]
		for _, r := range relays[1:] {
			host := r.network.Host()
			if err := asker.network.Host().Connect(t.Context(), peer.AddrInfo{ID: host.ID(), Addrs: host.Addrs()}); err != nil {
				t.Fatal(err)
			}
		}
		asker.limit = 5 * time.Minute
		asker.until("all are members", func() bool { return asker.Status().Connected == 3 })

		f := aPackage(t, 0, "module")
		if _, err := founder.KeepEnvironment(t.Context(), f.Encode()); err != nil {
			t.Fatal(err)
		}
		relays[1].network.Host().SetStreamHandler(packages.Protocol, func(s network.Stream) { // A flood.
			for {
				if _, err := s.Write(bytes.Repeat([]byte{0xff}, 4096)); err != nil {
					return
				}
			}
		})
		relays[2].network.Host().SetStreamHandler(block.Protocol, func(s network.Stream) { // Other bytes.
			if _, err := s.Read(make([]byte, 1024)); err != nil {
				return
			}
			header, err := wire.EncodeBlockHeader(wire.BlockHeader{Found: true, Bytes: 4})
			if err != nil {
				t.Error(err)
			}
			_, _ = s.Write(append(append([]byte{byte(len(header))}, header...), "evil"...))
		})
		list, err := asker.Environments(t.Context(), f.CID().String(), false)
		if err != nil || len(list) != 1 || len(list[0].Holders) != 1 {
			t.Fatalf("%+v, %v", list, err)
		}
		liar := relays[2].Peer().String()
		got, err := env.AssemblePackage(t.Context(), f.CID(), func(_ context.Context, cid wire.CID) ([]byte, error) {
			return asker.Block(t.Context(), cid.String(), append([]string{liar}, list[0].Holders...))
		})
		if err != nil || got.CID() != f.CID() {
			t.Fatal(err)
		}
		if caught := asker.network.Stats().Blocks.Misbehaved; caught == 0 {
			t.Error("the liar was not caught")
		}
	})
}

// What the API takes is at least what a package file may have.
func TestAPITakesTheLargestPackage(t *testing.T) {
	if api.MaxPackageBytes < pack.MaxFileBytes {
		t.Errorf("%d bytes, a package file may have %d", api.MaxPackageBytes, pack.MaxFileBytes)
	}
}
