package store

import (
	"bytes"
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/multiformats/go-multiaddr"

	"github.com/lightswarm/lightswarm/p2p/discovery"
	"github.com/lightswarm/lightswarm/wire"
)

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// announce stores own announcement number n and returns its sequence.
func announce(t testing.TB, s *Store, n int, version uint64, draw *uint64) (sequence uint64) {
	t.Helper()
	cid, data := sample(n)
	signed, err := s.Announce(Own{Bundle: cid, Data: data, Version: version, Draw: draw, Sign: func(q uint64) ([]byte, error) {
		sequence = q
		return fmt.Appendf(nil, "announcement %d", q), nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("announcement %d", sequence); string(signed) != want {
		t.Fatalf("got %q, want %q", signed, want)
	}
	return sequence
}

func texts(list [][]byte) (out []string) {
	for _, b := range list {
		out = append(out, string(b))
	}
	return out
}

func TestNewerSchemaIsRefused(t *testing.T) {
	fs := vfs.NewMem()
	s := openOn(t, fs, 1000)
	must(t, s.update(durable, func(tx *transaction) error {
		tx.put(schemaKey, binary.BigEndian.AppendUint32(nil, schema+1))
		return nil
	}), s.Close())
	_, err := Open(Options{Folder: "db", FileSystem: fs})
	var newer *SchemaError
	if !errors.As(err, &newer) || newer.Found != schema+1 || !strings.Contains(err.Error(), "upgrade lightswarm") {
		t.Fatalf("open: %v", err)
	}
}

func TestFirstSchemaIsConverted(t *testing.T) {
	fs := vfs.NewMem()
	s := openOn(t, fs, 1000)
	counter, err := s.Draws().Reserve(t.Context(), 0)
	must(t, err, s.update(durable, func(tx *transaction) error {
		tx.put(schemaKey, binary.BigEndian.AppendUint32(nil, 1))
		tx.put(key(tagDraw, uint64Field(counter)), nil)
		return nil
	}), s.Close())
	for range 2 { // converted, and as converted
		s = openOn(t, fs, 1000)
		if left, err := s.Draws().Resume(t.Context(), 0); len(left) != 0 || err != nil {
			t.Errorf("draws %v, %v, want those of schema 1 to be left out", left, err)
		}
		if value, _, err := get(s.db, schemaKey); err != nil || binary.BigEndian.Uint32(value) != schema {
			t.Errorf("schema %d, %v", value, err)
		}
		must(t, s.Close())
	}
	s = openOn(t, fs, 1000)
	if next, err := s.Draws().Reserve(t.Context(), 0); next != counter+1 || err != nil {
		t.Errorf("next counter %d, %v", next, err)
	}
	must(t, s.Close())
}

func TestBindRefusesAnotherNetwork(t *testing.T) {
	fs := vfs.NewMem()
	s := openOn(t, fs, 1000)
	mine, charter := sample(1)
	other, _ := sample(2)
	if _, bound, err := s.Network(); bound || err != nil {
		t.Fatalf("a new store is bound: %v", err)
	}
	must(t, s.Bind(mine, map[wire.CID][]byte{mine: charter}), s.Bind(mine, nil), s.Close())
	s = openOn(t, fs, 1000)
	if err := s.Bind(other, nil); !errors.Is(err, ErrOtherNetwork) || !strings.Contains(err.Error(), mine.String()) {
		t.Errorf("bind to another network: %v", err)
	}
	if got, err := s.Get(mine); string(got) != string(charter) || err != nil {
		t.Errorf("the charter is %q, %v", got, err)
	}
	if pinned, err := s.Pinned(NetworkSet); len(pinned) != 1 || err != nil {
		t.Errorf("%d blocks of the network are pinned, %v", len(pinned), err)
	}
	if got, bound, err := s.Network(); got != mine || !bound || err != nil {
		t.Errorf("bound to %v, %v, %v", got, bound, err)
	}
	must(t, s.Close())
}

func TestReleases(t *testing.T) {
	s := open(t, 1000)
	if got := s.Head(); got != 0 {
		t.Errorf("head of an empty store is %d", got)
	}
	for _, version := range []uint64{0, 1, 5, 300, 4} {
		must(t, s.PutRelease(version, fmt.Appendf(nil, "r%d", version)))
	}
	must(t, s.PutRelease(5, []byte("r5")))
	if err := s.PutRelease(5, []byte("fork")); !errors.Is(err, ErrOtherRelease) {
		t.Errorf("second release of a version: %v", err)
	}
	if got := s.Head(); got != 300 {
		t.Errorf("head is %d", got)
	}
	list, err := s.Releases(1, 3)
	must(t, err)
	if diff := cmp.Diff([]string{"r1", "r4", "r5"}, texts(list)); diff != "" {
		t.Error(diff)
	}
	if _, ok, err := s.Release(2); ok || err != nil {
		t.Errorf("missing release: %v, %v", ok, err)
	}
}

func TestOwnAnnouncements(t *testing.T) {
	s := open(t, 1<<20)
	s.maxOwn = 3
	ctx := t.Context()
	for want := range uint64(5) {
		counter, err := s.Draws().Reserve(ctx, want/4) // the last one under version 1
		must(t, err)
		if counter != want {
			t.Errorf("counter %d, want %d", counter, want)
		}
	}
	draws := []uint64{1, 3}
	for i := range 5 {
		var draw *uint64
		if i < len(draws) {
			draw = &draws[i]
		}
		if got := announce(t, s, i, uint64(i), draw); got != uint64(i) {
			t.Errorf("sequence %d, want %d", got, i)
		}
	}
	list, err := s.Announcements(self, 0, 10)
	must(t, err)
	if diff := cmp.Diff([]string{"announcement 2", "announcement 3", "announcement 4"}, texts(list)); diff != "" {
		t.Error(diff)
	}
	for range 2 { // resuming again changes nothing
		left, err := s.Draws().Resume(ctx, 0)
		must(t, err)
		if diff := cmp.Diff([]uint64{0, 2}, left); diff != "" {
			t.Error(diff)
		}
	}
	if left, err := s.Draws().Resume(ctx, 1); len(left) != 0 || err != nil {
		t.Errorf("draws %v, %v: the one of version 1 was left out", left, err)
	}
	if counter, err := s.Draws().Reserve(ctx, 1); counter != 5 || err != nil {
		t.Errorf("the counter after those left out is %d, %v", counter, err)
	}
	if got := s.NextSequence(); got != 5 {
		t.Errorf("next sequence is %d", got)
	}
	must(t, s.ForgetBundles(3))
	for i := range 5 {
		cid, _ := sample(i)
		members, err := s.Pinned(bundleSet(uint64(i)))
		must(t, err)
		if pinned := len(members) == 1 && members[0] == cid; pinned != (i >= 3) {
			t.Errorf("bundle of version %d pinned: %v", i, pinned)
		}
	}
}

func TestFailedSigningTakesNoSequence(t *testing.T) {
	s := open(t, 1000)
	cid, data := sample(1)
	broken := errors.New("no key")
	if _, err := s.Announce(Own{Bundle: cid, Data: data, Sign: func(uint64) ([]byte, error) { return nil, broken }}); !errors.Is(err, broken) {
		t.Errorf("announce: %v", err)
	}
	if there, err := s.Has(cid); there || err != nil || s.NextSequence() != 0 || s.BlockBytes() != 0 {
		t.Error("a failed announcement left something behind")
	}
}

func TestOthersAnnouncementsAreBounded(t *testing.T) {
	fs := vfs.NewMem()
	s := openOn(t, fs, 1000)
	s.maxOthers = 4
	a, b := wire.PeerID("peer a"), wire.PeerID("peer b")
	for i := range uint64(3) {
		for _, p := range []wire.PeerID{a, b} {
			added, err := s.PutAnnouncement(p, 10*i, fmt.Appendf(nil, "%s %d", string(p), 10*i))
			must(t, err)
			if !added {
				t.Error("a new announcement is not new")
			}
		}
	}
	if added, err := s.PutAnnouncement(b, 20, []byte("again")); added || err != nil {
		t.Errorf("a known announcement is new: %v", err)
	}
	must(t, s.SetCursor(a, 7), s.Close())
	s = openOn(t, fs, 1000)
	s.maxOthers = 4
	added, err := s.PutAnnouncement(a, 30, []byte("peer a 30"))
	must(t, err)
	if !added {
		t.Error("a new announcement is not new")
	}
	for p, want := range map[wire.PeerID][]string{a: {"peer a 20", "peer a 30"}, b: {"peer b 10", "peer b 20"}, "x": nil} {
		list, err := s.Announcements(p, 1, 10)
		must(t, err)
		if diff := cmp.Diff(want, texts(list)); diff != "" {
			t.Errorf("%s: %s", p, diff)
		}
	}
	for p, want := range map[wire.PeerID]uint64{a: 7, b: 0} {
		if got, err := s.Cursor(p); got != want || err != nil {
			t.Errorf("cursor of %s is %d, %v", p, got, err)
		}
	}
	must(t, s.Close())
}

func TestPeerCache(t *testing.T) {
	var cache discovery.Cache = open(t, 1000).Peers()
	if list, err := cache.Load(); list != nil || err != nil {
		t.Errorf("an empty cache has %v, %v", list, err)
	}
	address, err := multiaddr.NewMultiaddr("/ip4/192.0.2.1/udp/4001/quic-v1")
	must(t, err)
	id, err := peer.Decode("12D3KooWKnDdG3iXw9eTFijk3EWSunZcFi54Zka4wmtqtt6rPxc8")
	must(t, err)
	want := []peer.AddrInfo{{ID: id, Addrs: []multiaddr.Multiaddr{address}}}
	must(t, cache.Save(want))
	got, err := cache.Load()
	must(t, err)
	if len(got) != 1 || got[0].ID != id || len(got[0].Addrs) != 1 || !got[0].Addrs[0].Equal(address) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Large values stay out of the tables in which keys are looked up, also after the database was written out, and survive
// being put there.
func TestLargeValuesAreKeptApart(t *testing.T) {
	s := open(t, 1<<30)
	want := make(map[wire.CID][]byte)
	for i := range 4 {
		data := make([]byte, wire.MaxBlockBytes)
		binary.BigEndian.PutUint64(data, uint64(i))
		want[wire.SumCID(data)] = data
	}
	must(t, s.PutPinned("large", want), s.db.Flush())
	if got, least := s.db.Metrics().BlobFiles.ReferencedValueSize, uint64(len(want)*wire.MaxBlockBytes); got < least {
		t.Errorf("%d bytes of values are outside of the tables, want %d", got, least)
	}
	for cid, data := range want {
		got, err := s.Get(cid)
		must(t, err)
		if !bytes.Equal(got, data) {
			t.Errorf("block %s has come back otherwise", cid)
		}
	}
}

func TestCursorsAreBounded(t *testing.T) {
	fs := vfs.NewMem()
	s := openOn(t, fs, 1000)
	peer := func(i int) wire.PeerID { return wire.PeerID(fmt.Sprint(i % 10)) }
	for i := range 40 {
		s.maxCursors = 4
		must(t, s.SetCursor(peer(7*i), uint64(i+1)))
		if got, err := s.Cursor(peer(7 * i)); got != uint64(i+1) || err != nil {
			t.Errorf("cursor %d is %d, %v", i, got, err)
		}
		if i%5 == 0 {
			must(t, s.Close())
			s = openOn(t, fs, 1000)
		}
	}
	kept := 0
	for i := range 10 {
		if got, err := s.Cursor(peer(i)); err != nil {
			t.Error(err)
		} else if got > 0 {
			kept++
		}
	}
	if kept != 4 || s.cursors != 4 {
		t.Errorf("%d cursors are kept, %d counted, want 4", kept, s.cursors)
	}
	must(t, s.Close())
}

func TestPackages(t *testing.T) {
	fs := vfs.NewMem()
	s := openOn(t, fs, 60)
	sign := func(author byte, name string, manifest wire.CID) wire.SignedEnvironmentPackage {
		t.Helper()
		key := wire.NewKey(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{author}, ed25519.SeedSize)))
		p, err := wire.SignEnvironmentPackage(key, wire.EnvironmentPackage{Name: name, Version: "1.0.0", Manifest: manifest, Created: time.UnixMilli(1)})
		must(t, err)
		return p
	}
	a, aData := sample(1)
	b, bData := sample(2)
	shared, sharedData := sample(3)
	first, second, third := sign('a', "one", a), sign('b', "one", a), sign('a', "two", b)
	must(t,
		s.KeepPackage(first, map[wire.CID][]byte{a: aData, shared: sharedData}),
		s.KeepPackage(first, map[wire.CID][]byte{a: aData, shared: sharedData}),
		s.KeepPackage(second, nil),
		s.KeepPackage(third, map[wire.CID][]byte{b: bData, shared: sharedData}),
		s.Close())
	s = openOn(t, fs, 60)
	count := func(manifest wire.CID, most, want int) {
		t.Helper()
		list, err := s.Packages(manifest, most)
		must(t, err)
		if len(list) != want {
			t.Errorf("%d packages, want %d", len(list), want)
		}
	}
	count(wire.CID{}, 10, 3)
	count(wire.CID{}, 2, 2)
	count(wire.CID{}, 0, 0)
	count(a, 10, 2)
	count(b, 10, 1)

	for manifest, want := range map[wire.CID]bool{a: true, shared: false} {
		found, err := s.DropPackage(manifest)
		must(t, err)
		if found != want {
			t.Errorf("found %v, want %v", found, want)
		}
	}
	count(wire.CID{}, 10, 1)
	// What another package pins stays when room is needed; what was let go does not.
	for n := 10; n < 20; n++ {
		cid, data := sample(n)
		must(t, s.Put(cid, data))
	}
	for cid, want := range map[wire.CID]bool{a: false, b: true, shared: true} {
		if there, err := s.Has(cid); err != nil || there != want {
			t.Errorf("%s is there: %v, want %v, %v", cid, there, want, err)
		}
	}
	for n := range MaxPackages - 1 {
		must(t, s.KeepPackage(sign('c', "many", wire.SumCID(fmt.Append(nil, n))), nil))
	}
	if err := s.KeepPackage(sign('c', "more", a), nil); !errors.Is(err, ErrPackages) {
		t.Errorf("one more than is kept: %v", err)
	}
	must(t, s.KeepPackage(third, nil), s.Close())
}
