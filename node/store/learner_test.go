package store

import (
	"fmt"
	"reflect"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/google/go-cmp/cmp"

	"github.com/lightswarm/lightswarm/learner"
	"github.com/lightswarm/lightswarm/learner/storetest"
	"github.com/lightswarm/lightswarm/wire"
)

func TestLearnerStoreConforms(t *testing.T) {
	// Folders are on a file system in memory, which stays when a store is closed.
	var mu sync.Mutex
	disks := map[string]vfs.FS{}
	storetest.Run(t, func(folder string) (learner.Store, func() error, error) {
		mu.Lock()
		if disks[folder] == nil {
			disks[folder] = vfs.NewMem()
		}
		disk := disks[folder]
		mu.Unlock()
		s, err := Open(Options{Folder: "db", Self: self, FileSystem: disk, MaxBlockBytes: 1 << 30})
		if err != nil {
			return nil, nil, err
		}
		return s.Learner(), s.Close, nil
	})
}

func TestCommitKeepsReleaseAndLedger(t *testing.T) {
	s := open(t, 1<<20)
	l := s.Learner()
	var used []wire.CID
	for i := range uint64(3) {
		accepted := storetest.Bundle(i, 0, 1)
		if i == 1 {
			accepted.Record.Purpose = wire.PurposeEvaluateGreedy
		}
		must(t, l.Accept(t.Context(), []learner.Accepted{accepted}))
		used = append(used, accepted.Record.CID)
	}
	for version, consumed := range [][]wire.CID{nil, used[:2], used[2:]} {
		release := fmt.Appendf(nil, "release %d", version)
		must(t, l.Commit(t.Context(), learner.Checkpoint{Version: uint64(version), Release: release, Consumed: consumed}))
	}
	if s.Head() != 2 {
		t.Errorf("head is %d", s.Head())
	}
	list, err := s.Releases(0, 10)
	must(t, err)
	if diff := cmp.Diff([]string{"release 0", "release 1", "release 2"}, texts(list)); diff != "" {
		t.Error(diff)
	}
	ledger, err := s.Ledger(1, 10)
	must(t, err)
	want := []LedgerEntry{
		{Version: 1, Release: wire.SumCID([]byte("release 1")), Trained: used[:1], Evaluated: used[1:2]},
		{Version: 2, Release: wire.SumCID([]byte("release 2")), Trained: used[2:]},
	}
	if !reflect.DeepEqual(want, ledger) {
		t.Errorf("ledger: %+v, want %+v", ledger, want)
	}
	if pinned, err := s.Pinned(acceptedSet); len(pinned) != 0 || err != nil {
		t.Errorf("consumed bundles are pinned: %v, %v", pinned, err)
	}
}

func TestAcceptedBundlesAreNotEvicted(t *testing.T) {
	accepted := storetest.Bundle(1, 0, 1)
	s := open(t, int64(len(accepted.Bundle))+20)
	must(t, s.Learner().Accept(t.Context(), []learner.Accepted{accepted}))
	for i := range 20 {
		must(t, s.Put(sample(i)))
	}
	if _, err := s.Learner().Bundle(t.Context(), accepted.Record.CID); err != nil {
		t.Error(err)
	}
}
