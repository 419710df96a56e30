package store

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"pgregory.net/rapid"
)

// After a power cut at any moment, with any part of what was not synced lost, everything durable is there, nothing is
// half there, and counters go on without a gap.
func TestPowerCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		fs := vfs.NewCrashableMem()
		s := openOn(t, fs, 1<<20)
		var announced, reserved, released int
		t.Repeat(map[string]func(*rapid.T){
			"announce": func(t *rapid.T) {
				cid, data := sample(announced)
				_, err := s.Announce(Own{Bundle: cid, Data: data, Sign: func(q uint64) ([]byte, error) {
					if q != uint64(announced) {
						t.Fatalf("sequence %d, want %d", q, announced)
					}
					return fmt.Append(nil, q), nil
				}})
				if err != nil {
					t.Fatal(err)
				}
				announced++
			},
			"reserve": func(t *rapid.T) {
				counter, err := s.Draws().Reserve(context.Background(), 7)
				if err != nil || counter != uint64(reserved) {
					t.Fatalf("counter %d, want %d: %v", counter, reserved, err)
				}
				reserved++
			},
			"release": func(t *rapid.T) {
				if err := s.PutRelease(uint64(released), []byte("release")); err != nil {
					t.Fatal(err)
				}
				released++
			},
			"lazy block": func(t *rapid.T) {
				cid, data := sample(1000 + rapid.IntRange(0, 50).Draw(t, "block"))
				if err := s.Put(cid, data); err != nil {
					t.Fatal(err)
				}
			},
			"power cut": func(t *rapid.T) {
				lost := vfs.CrashCloneCfg{
					UnsyncedDataPercent: rapid.SampledFrom([]int{0, 50, 100}).Draw(t, "unsynced kept"),
					RNG:                 rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0)),
				}
				crashed := fs.CrashClone(lost)
				s.Close()
				fs = crashed
				s = openOn(t, fs, 1<<20)
				checkDurable(t, s, announced, reserved, released)
			},
		})
		checkDurable(t, s, announced, reserved, released)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// checkDurable checks what a store must hold and that its parts agree.
func checkDurable(t rapid.TB, s *Store, announced, reserved, released int) {
	t.Helper()
	list, err := s.Announcements(self, 0, announced+1)
	if err != nil || len(list) != announced || s.NextSequence() != uint64(announced) {
		t.Fatalf("%d announcements and next sequence %d, want %d: %v", len(list), s.NextSequence(), announced, err)
	}
	for i, signed := range list {
		cid, _ := sample(i)
		if _, err := s.Get(cid); err != nil || string(signed) != fmt.Sprint(i) {
			t.Fatalf("announcement %d is %q, its bundle: %v", i, signed, err)
		}
	}
	left, err := s.Draws().Resume(context.Background(), 7)
	if err != nil || len(left) != reserved {
		t.Fatalf("%d draws left, want %d: %v", len(left), reserved, err)
	}
	if releases, err := s.Releases(0, released+1); err != nil || len(releases) != released {
		t.Fatalf("%d releases, want %d: %v", len(releases), released, err)
	}
	var bytes int64
	err = scanPrefix(s.db, key(tagBlock), func(_, v []byte) (bool, error) {
		bytes += int64(len(v))
		return true, nil
	})
	if err != nil || bytes != s.BlockBytes() {
		t.Fatalf("%d bytes of blocks, counted as %d: %v", bytes, s.BlockBytes(), err)
	}
}

// Changes that wait for the disk at the same time share a sync of the log: while one sync is held up, all others are
// applied, and one or two more syncs make all of them durable.
func TestConcurrentChangesShareSyncs(t *testing.T) {
	const writers = 64
	var armed atomic.Bool
	var syncs atomic.Int64
	started, release := make(chan struct{}), make(chan struct{})
	inject := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if !armed.Load() || op.Kind != errorfs.OpFileSync && op.Kind != errorfs.OpFileSyncData {
			return nil
		}
		if syncs.Add(1) == 1 {
			close(started)
			<-release
		}
		return nil
	})
	s := openOn(t, errorfs.Wrap(vfs.NewMem(), inject), 1<<20)
	armed.Store(true)
	var running sync.WaitGroup
	running.Go(func() { announce(t, s, 0, 0, nil) })
	<-started
	for i := 1; i < writers; i++ {
		running.Go(func() { announce(t, s, i, 0, nil) })
	}
	awaitApplied(s, records{nextSequence: writers})
	close(release)
	running.Wait()
	armed.Store(false)
	if got := syncs.Load(); got > 3 {
		t.Errorf("%d changes took %d syncs", writers, got)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A record is seen by nobody before it is durable: a node that forgot one which others have would be taken for an old copy.
func TestUnsyncedRecordsAreNotShown(t *testing.T) {
	var armed atomic.Bool
	started, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if armed.Load() && (op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData) {
			once.Do(func() { close(started) })
			<-release
		}
		return nil
	}))
	s := openOn(t, fs, 1<<20)
	announce(t, s, 0, 0, nil)
	must(t, s.PutRelease(0, []byte("release 0")))
	shown := func() string {
		announcements, err := s.Announcements(self, 0, 10)
		releases, releasesErr := s.Releases(0, 10)
		must(t, err, releasesErr)
		return fmt.Sprintf("%d: %q, %d: %q", s.NextSequence(), announcements, s.Head(), releases)
	}
	before := shown()

	armed.Store(true)
	var running sync.WaitGroup
	running.Go(func() { announce(t, s, 1, 0, nil) })
	running.Go(func() {
		if err := s.PutRelease(1, []byte("release 1")); err != nil {
			t.Error(err)
		}
	})
	<-started
	awaitApplied(s, records{nextSequence: 2, nextVersion: 2})
	if got := shown(); got != before {
		t.Errorf("before the sync readers see %s, want %s", got, before)
	}
	close(release)
	running.Wait()
	want := `2: ["announcement 0" "announcement 1"], 1: ["release 0" "release 1"]`
	if got := shown(); got != want {
		t.Errorf("after the sync readers see %s, want %s", got, want)
	}
	must(t, s.Close())
}

// awaitApplied waits until changes are applied, be they durable or not.
func awaitApplied(s *Store, want records) {
	for {
		s.mu.Lock()
		got := s.records
		s.mu.Unlock()
		if got.nextSequence >= want.nextSequence && got.nextVersion >= want.nextVersion {
			return
		}
		runtime.Gosched()
	}
}

// When the disk takes no more, changes fail and go on failing, what was confirmed is there after a restart, and nothing
// hangs.
func TestDiskFailure(t *testing.T) {
	for name, kinds := range map[string][]errorfs.OpKind{
		"sync":  {errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo, errorfs.OpFileFlush},
		"write": {errorfs.OpFileWrite},
	} {
		t.Run(name, func(t *testing.T) {
			var broken atomic.Bool
			inject := errorfs.InjectorFunc(func(op errorfs.Op) error {
				if broken.Load() && slices.Contains(kinds, op.Kind) {
					return syscall.ENOSPC
				}
				return nil
			})
			disk := vfs.NewCrashableMem()
			s := openOn(t, errorfs.Wrap(disk, inject), 1<<20)
			for i := range 3 {
				announce(t, s, i, 0, nil)
			}
			broken.Store(true)
			for range 2 {
				cid, data := sample(100)
				_, err := s.Announce(Own{Bundle: cid, Data: data, Sign: func(q uint64) ([]byte, error) { return fmt.Append(nil, q), nil }})
				if !errors.Is(err, ErrFailed) {
					t.Errorf("announce on a full disk: %v", err)
				}
			}
			after := disk.CrashClone(vfs.CrashCloneCfg{})
			s.Close()
			s = openOn(t, after, 1<<20)
			defer s.Close()
			if list, err := s.Announcements(self, 0, 10); len(list) != 3 || err != nil {
				t.Errorf("%d announcements are left of 3: %v", len(list), err)
			}
		})
	}
}

// child is set in the environment of the process that TestKill kills; it names the database's folder.
const child = "LIGHTSWARM_STORE_TEST_CHILD"

// A process that is killed at any moment loses nothing that it knew to be durable.
func TestKill(t *testing.T) {
	if folder := os.Getenv(child); folder != "" {
		announceForever(folder)
	}
	folder := filepath.Join(t.TempDir(), "db")
	announced := 0
	for round := range 3 {
		command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKill$")
		command.Env = append(os.Environ(), child+"="+folder)
		output, err := command.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(output)
		for range 20 + 7*round {
			if !lines.Scan() {
				t.Fatal("the child ended early")
			}
		}
		if err := command.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		last := lines.Text()
		for lines.Scan() {
			last = lines.Text()
		}
		command.Wait()
		var sequence int
		if _, err := fmt.Sscan(last, &sequence); err != nil {
			t.Fatalf("the child wrote %q", last)
		}

		s, err := Open(Options{Folder: folder, Self: self, MaxBlockBytes: 1 << 30})
		if err != nil {
			t.Fatal(err)
		}
		// The one after the last that was reported may have been made, too.
		now := int(s.NextSequence())
		if now < sequence+1 || now > sequence+2 || now <= announced {
			t.Fatalf("round %d: next sequence %d after %d was reported", round, now, sequence)
		}
		announced = now
		checkDurable(t, s, announced, 0, 0)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// announceForever is the child: it reports each sequence once it is durable.
func announceForever(folder string) {
	s, err := Open(Options{Folder: folder, Self: self, MaxBlockBytes: 1 << 30})
	if err != nil {
		panic(err)
	}
	for {
		cid, data := sample(int(s.NextSequence()))
		signed, err := s.Announce(Own{Bundle: cid, Data: data, Sign: func(q uint64) ([]byte, error) { return fmt.Append(nil, q), nil }})
		if err != nil {
			panic(err)
		}
		fmt.Fprintln(os.Stdout, string(signed))
	}
}
