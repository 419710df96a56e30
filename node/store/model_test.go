package store

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/lightswarm/lightswarm/p2p/block"
	"github.com/lightswarm/lightswarm/wire"
)

// TestMain makes the checks of a property fewer than rapid does by itself: they open and close databases, and under the race
// detector pebble writes a stack trace for every table that it looks into. The flag still sets another number.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "30"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

const self wire.PeerID = "me"

// openOn opens a store on a file system and ends the test if that fails.
func openOn(t rapid.TB, fs vfs.FS, maxBytes int64) *Store {
	t.Helper()
	s, err := Open(Options{Folder: "db", Self: self, FileSystem: fs, MaxBlockBytes: maxBytes})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// open opens an empty store for one test.
func open(t *testing.T, maxBytes int64) *Store {
	t.Helper()
	s := openOn(t, vfs.NewMem(), maxBytes)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// sample is a block that a number identifies.
func sample(n int) (wire.CID, []byte) {
	data := bytes.Repeat([]byte{byte(n), byte(n >> 8)}, 1+n%7)
	data = append(data, fmt.Sprint(n)...)
	return wire.SumCID(data), data
}

// sets are the names of pins, one of them the beginning of another.
var sets = []string{"a", "ab", "b"}

// model is what the blocks and pins of a store should be.
type model struct {
	maxBytes int
	blocks   map[int]bool
	order    []int // oldest first; of blocks stored
	pins     map[string]map[int]bool
}

func (m *model) size() (bytes int) {
	for n := range m.blocks {
		_, data := sample(n)
		bytes += len(data)
	}
	return bytes
}

func (m *model) pinned(n int) bool {
	for _, set := range m.pins {
		if set[n] {
			return true
		}
	}
	return false
}

// put returns false if the block does not fit.
func (m *model) put(n int) bool {
	if m.blocks[n] {
		return true
	}
	_, data := sample(n)
	var remove []int
	size := m.size()
	for _, old := range m.order {
		if size+len(data) <= m.maxBytes {
			break
		}
		if _, oldData := sample(old); !m.pinned(old) {
			remove, size = append(remove, old), size-len(oldData)
		}
	}
	if size+len(data) > m.maxBytes {
		return false
	}
	for _, old := range remove {
		delete(m.blocks, old)
		m.order = slices.DeleteFunc(m.order, func(n int) bool { return n == old })
	}
	m.blocks[n] = true
	m.order = append(m.order, n)
	return true
}

// The store's blocks and pins behave as the model's under any sequence of operations, and a reopened store goes on
// where it was closed.
func TestBlocksFollowModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Few blocks, and no room for all of them.
		const samples, maxBytes = 8, 50
		fs := vfs.NewMem()
		s := openOn(t, fs, maxBytes)
		m := &model{maxBytes: maxBytes, blocks: map[int]bool{}, pins: map[string]map[int]bool{}}
		for _, set := range sets {
			m.pins[set] = map[int]bool{}
		}
		numbers := rapid.IntRange(0, samples-1)
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				n := numbers.Draw(t, "block")
				cid, data := sample(n)
				err := s.Put(cid, data)
				if m.put(n) != (err == nil) || err != nil && !errors.Is(err, ErrFull) {
					t.Fatalf("put %d: %v", n, err)
				}
			},
			"pin": func(t *rapid.T) {
				set, n := rapid.SampledFrom(sets).Draw(t, "set"), numbers.Draw(t, "block")
				cid, _ := sample(n)
				if err := s.Pin(set, cid); err != nil {
					t.Fatal(err)
				}
				m.pins[set][n] = true
			},
			"set pins": func(t *rapid.T) {
				set := rapid.SampledFrom(sets).Draw(t, "set")
				want := map[int]bool{}
				var cids []wire.CID
				for _, n := range rapid.SliceOfNDistinct(numbers, 0, 3, rapid.ID).Draw(t, "blocks") {
					cid, _ := sample(n)
					cids, want[n] = append(cids, cid), true
				}
				if err := s.SetPins(set, cids...); err != nil {
					t.Fatal(err)
				}
				m.pins[set] = want
			},
			"reopen": func(t *rapid.T) {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				s = openOn(t, fs, maxBytes)
				m.compare(t, s, samples)
			},
			// All is looked at now and then: pebble writes a stack trace at every look under the race detector.
			"look": func(t *rapid.T) { m.compare(t, s, samples) },
			"": func(t *rapid.T) {
				if got := s.BlockBytes(); got != int64(m.size()) {
					t.Fatalf("%d bytes, want %d", got, m.size())
				}
			},
		})
		m.compare(t, s, samples)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// compare looks at all blocks of a store and all pins.
func (m *model) compare(t *rapid.T, s *Store, samples int) {
	for n := range samples {
		cid, data := sample(n)
		got, err := s.Get(cid)
		there, hasErr := s.Has(cid)
		if hasErr != nil || there != m.blocks[n] {
			t.Fatalf("has %d: %v, %v", n, there, hasErr)
		}
		if m.blocks[n] && !bytes.Equal(got, data) || !m.blocks[n] && !errors.Is(err, block.ErrNotFound) {
			t.Fatalf("get %d: %x, %v", n, got, err)
		}
	}
	names := func(cids []wire.CID) (list []string) {
		for _, cid := range cids {
			list = append(list, cid.String())
		}
		slices.Sort(list)
		return list
	}
	for _, set := range sets {
		got, err := s.Pinned(set)
		if err != nil {
			t.Fatal(err)
		}
		var want []wire.CID
		for n := range maps.Keys(m.pins[set]) {
			cid, _ := sample(n)
			want = append(want, cid)
		}
		if diff := cmp.Diff(names(want), names(got)); diff != "" {
			t.Fatal(diff)
		}
	}
}
