// Package storetest checks that an implementation keeps the contract of learner.Store.
package storetest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/lightswarm/lightswarm/learner"
	"github.com/lightswarm/lightswarm/wire"
)

// Opener opens the store that lives in dir, an existing folder that is empty at first, and returns it with a function
// that closes it. The tests open a folder again after they closed it, as a restart does.
type Opener func(dir string) (s learner.Store, closeStore func() error, err error)

// Run runs the conformance tests.
func Run(t *testing.T, open Opener) {
	t.Run("Empty", func(t *testing.T) {
		s := reopen(t, open, t.TempDir())
		got, err := s.Load(t.Context())
		if err != nil || got.Checkpoint != nil || len(got.Records) > 0 {
			t.Fatalf("an empty store loads %+v, %v", got, err)
		}
		if _, err := s.Bundle(t.Context(), wire.SumCID([]byte("nothing"))); !errors.Is(err, learner.ErrNotStored) {
			t.Fatalf("an unknown bundle: %v", err)
		}
	})
	t.Run("Cancelled", func(t *testing.T) { cancelled(t, reopen(t, open, t.TempDir())) })
	t.Run("SlicesAreCopied", func(t *testing.T) { slicesAreCopied(t, reopen(t, open, t.TempDir())) })
	t.Run("Concurrent", func(t *testing.T) { concurrent(t, open) })
	t.Run("Model", func(t *testing.T) { model(t, open) })
}

// reopen opens the store in dir and closes it when the test ends.
func reopen(t *testing.T, open Opener, dir string) learner.Store {
	t.Helper()
	s, closeStore, err := open(dir)
	if err != nil {
		t.Fatalf("opening: %v", err)
	}
	t.Cleanup(func() {
		if err := closeStore(); err != nil {
			t.Errorf("closing: %v", err)
		}
	})
	return s
}

// Bundle returns the bytes and the record of a made-up bundle; equal arguments give equal results.
func Bundle(order, version uint64, peer byte) learner.Accepted {
	b := fmt.Appendf(nil, "bundle %d of version %d by %d", order, version, peer)
	b = append(b, bytes.Repeat([]byte{peer}, int(order%7)*100)...)
	return learner.Accepted{
		Record: learner.Record{
			CID:         wire.SumCID(b),
			Purpose:     wire.PurposeTrain,
			Environment: wire.SumCID([]byte("environment")),
			Peer:        wire.PeerID([]byte{peer}),
			Counter:     order,
			Version:     version,
			Order:       order,
		},
		Bundle: b,
	}
}

func cancelled(t *testing.T, s learner.Store) {
	if _, err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a := Bundle(0, 0, 1)
	// The store may finish or give up, but it must say which.
	acceptErr := s.Accept(ctx, []learner.Accepted{a})
	_, err := s.Bundle(t.Context(), a.Record.CID)
	if acceptErr == nil && err != nil {
		t.Fatalf("accepted under a cancelled context, but: %v", err)
	}
	if err := s.Accept(t.Context(), []learner.Accepted{a}); err != nil {
		t.Fatalf("accepting after a cancelled attempt: %v", err)
	}
	if got, err := s.Bundle(t.Context(), a.Record.CID); err != nil || !bytes.Equal(got, a.Bundle) {
		t.Fatalf("bundle after a cancelled attempt: %d bytes, %v", len(got), err)
	}
}

func slicesAreCopied(t *testing.T, s learner.Store) {
	if _, err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	a := Bundle(3, 0, 1)
	mine := slices.Clone(a.Bundle)
	if err := s.Accept(t.Context(), []learner.Accepted{{Record: a.Record, Bundle: mine}}); err != nil {
		t.Fatal(err)
	}
	clear(mine)
	if got, err := s.Bundle(t.Context(), a.Record.CID); err != nil || !bytes.Equal(got, a.Bundle) {
		t.Fatalf("the store kept the caller's slice: %v", err)
	}
}

// concurrent accepts from several goroutines while another commits and reads.
func concurrent(t *testing.T, open Opener) {
	const goroutines, each = 4, 25
	dir := t.TempDir()
	s, closeStore, err := open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	accepted := make(chan learner.Accepted, goroutines*each)
	var group sync.WaitGroup
	for g := range goroutines {
		group.Go(func() {
			for i := range each {
				a := Bundle(uint64(g*each+i), 0, byte(g))
				if err := s.Accept(t.Context(), []learner.Accepted{a}); err != nil {
					t.Errorf("accepting: %v", err)
				}
				accepted <- a
			}
		})
	}
	var consumed []wire.CID
	for i := range goroutines * each / 2 {
		a := <-accepted
		if _, err := s.Bundle(t.Context(), a.Record.CID); err != nil {
			t.Errorf("an accepted bundle: %v", err)
		}
		consumed = append(consumed, a.Record.CID)
		if i%10 == 9 {
			c := learner.Checkpoint{Version: uint64(i), Consumed: consumed}
			if err := s.Commit(t.Context(), c); err != nil {
				t.Errorf("committing: %v", err)
			}
			consumed = nil
		}
	}
	group.Wait()
	if err := closeStore(); err != nil {
		t.Fatal(err)
	}
	got, err := reopen(t, open, dir).Load(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n := len(got.Records); n != goroutines*each {
		t.Fatalf("%d records survive, want %d", n, goroutines*each)
	}
	n := 0
	for _, r := range got.Records {
		if r.Consumed {
			n++
		}
	}
	if want := goroutines * each / 2 / 10 * 10; n != want {
		t.Fatalf("%d records are consumed, want %d", n, want)
	}
}

// model runs random operations, with restarts in between, and compares the store with learner.Memory, which is simple
// enough to be right.
func model(t *testing.T, open Opener) {
	rapid.Check(t, func(rt *rapid.T) {
		dir := t.TempDir()
		s, closeStore, err := open(dir)
		if err != nil {
			rt.Fatal(err)
		}
		defer func() { _ = closeStore() }()
		want := learner.NewMemory()
		compare(rt, s, want, 0)

		var all []learner.Accepted
		version, oldest := uint64(0), uint64(0)
		for range rapid.IntRange(1, 12).Draw(rt, "operations") {
			switch rapid.SampledFrom([]string{"accept", "accept", "commit", "restart"}).Draw(rt, "operation") {
			case "accept":
				var batch []learner.Accepted
				for range rapid.IntRange(0, 4).Draw(rt, "bundles") {
					if len(all) > 0 && rapid.IntRange(0, 3).Draw(rt, "again") == 0 {
						again := rapid.SampledFrom(all).Draw(rt, "bundle")
						if again.Record.Version < oldest {
							continue // it may be forgotten
						}
						again.Record.Order += 1000 // must not replace what is there
						batch = append(batch, again)
						continue
					}
					v := max(oldest, version-min(version, uint64(rapid.IntRange(0, 2).Draw(rt, "lag"))))
					a := Bundle(uint64(len(all)), v, byte(rapid.IntRange(1, 3).Draw(rt, "peer")))
					all, batch = append(all, a), append(batch, a)
				}
				for _, s := range []learner.Store{s, want} {
					if err := s.Accept(t.Context(), batch); err != nil {
						rt.Fatalf("accepting: %v", err)
					}
				}
			case "commit":
				version++
				oldest = version - min(version, 2)
				c := learner.Checkpoint{
					Version:  version,
					Release:  fmt.Appendf(nil, "release %d", version),
					Trainer:  bytes.Repeat([]byte{byte(version)}, 1000),
					Progress: fmt.Appendf(nil, "progress %d", version),
					Oldest:   oldest,
					Consumed: []wire.CID{wire.SumCID([]byte("never accepted"))},
				}
				for _, a := range all {
					if rapid.Bool().Draw(rt, "consume") {
						c.Consumed = append(c.Consumed, a.Record.CID)
					}
				}
				for _, s := range []learner.Store{s, want} {
					if err := s.Commit(t.Context(), c); err != nil {
						rt.Fatalf("committing: %v", err)
					}
				}
			case "restart":
				if err := closeStore(); err != nil {
					rt.Fatalf("closing: %v", err)
				}
				if s, closeStore, err = open(dir); err != nil {
					rt.Fatalf("opening again: %v", err)
				}
				compare(rt, s, want, oldest)
			}
			for _, a := range all {
				wantBundle, wantErr := want.Bundle(t.Context(), a.Record.CID)
				got, err := s.Bundle(t.Context(), a.Record.CID)
				if !bytes.Equal(got, wantBundle) || errors.Is(err, learner.ErrNotStored) != (wantErr != nil) {
					rt.Fatalf("bundle %d: %d bytes, %v; want %d bytes, %v",
						a.Record.Order, len(got), err, len(wantBundle), wantErr)
				}
			}
		}
	})
}

// compare loads both stores and compares what must be there.
func compare(rt *rapid.T, s, want learner.Store, oldest uint64) {
	load := func(s learner.Store) learner.Recovery {
		r, err := s.Load(context.Background())
		if err != nil {
			rt.Fatalf("loading: %v", err)
		}
		if !slices.IsSortedFunc(r.Records, func(a, b learner.Record) int { return cmp.Compare(a.Order, b.Order) }) {
			rt.Fatal("records are not in order")
		}
		r.Records = slices.DeleteFunc(r.Records, func(r learner.Record) bool { return r.Consumed && r.Version < oldest })
		if r.Checkpoint != nil {
			r.Checkpoint.Consumed = nil
		}
		return r
	}
	options := []gocmp.Option{cmpopts.EquateEmpty(), gocmp.Comparer(func(a, b wire.CID) bool { return a == b })}
	if diff := gocmp.Diff(load(want), load(s), options...); diff != "" {
		rt.Fatalf("loaded (-want +got):\n%s", diff)
	}
}
