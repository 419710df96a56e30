package node

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lightswarm/lightswarm/node/api"
	"github.com/lightswarm/lightswarm/node/store"
	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/virtualtime"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
)

// fakeEngine remembers what was loaded, and which sessions are open.
type fakeEngine struct {
	mu     sync.Mutex
	loaded policy.Digest // guarded by mu
	open   int           // guarded by mu
}

func (e *fakeEngine) Load(_ context.Context, s *policy.Snapshot) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.loaded = s.Digest()
	return nil
}

func (e *fakeEngine) Open() (policy.Session, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.open++
	return &fakeSession{engine: e, digest: e.loaded}, nil
}

func (e *fakeEngine) Close() error { return nil }

func (e *fakeEngine) sessions() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.open
}

type fakeSession struct {
	policy.Session
	engine *fakeEngine
	digest policy.Digest
}

func (s *fakeSession) Policy() policy.Digest { return s.digest }

func (s *fakeSession) Close() {
	s.engine.mu.Lock()
	defer s.engine.mu.Unlock()
	s.engine.open--
}

// following is a policies with everything around it faked.
type following struct {
	*policies
	engine  *fakeEngine
	blocks  map[wire.CID][]byte
	fetched func(wire.CID) error
}

// follow runs f in a bubble of fake time while policies follow.
func follow(t *testing.T, f func(t *testing.T, p *following)) {
	tinyPolicy() // outside the bubble, which could not wait for it
	virtualtime.Test(t, func(t *testing.T) {
		s, err := store.Open(store.Options{Folder: "db", InMemory: true, MaxBlockBytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		p := &following{engine: &fakeEngine{}, blocks: map[wire.CID][]byte{}, fetched: func(wire.CID) error { return nil }}
		_, blocks, err := tinyPolicy().Encode()
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range blocks {
			p.blocks[b.CID] = b.Data
		}
		p.policies = newPolicies(&policies{
			store: s, events: &api.Broadcaster{}, log: slog.New(slog.DiscardHandler), engine: p.engine, class: bundle.EngineExact,
			fetch: func(_ context.Context, cid wire.CID, _ []wire.PeerID, _ int) ([]byte, error) {
				if err := p.fetched(cid); err != nil {
					return nil, err
				}
				return p.blocks[cid], nil
			},
		})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { p.run(ctx) })
		f(t, p)
		cancel()
		running.Wait()
		p.close()
		if n := p.engine.sessions(); n != 0 {
			t.Errorf("%d sessions are open at the end", n)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// tinyRelease is a release of the tiny policy.
func tinyRelease(version uint64) wire.SignedRelease {
	anchor, _, err := tinyPolicy().Encode()
	if err != nil {
		panic(err)
	}
	return wire.SignedRelease{Release: wire.Release{
		Version: version, Policy: wire.PolicyRef{Digest: tinyPolicy().Digest(), StateDigest: tinyPolicy().State, Anchor: anchor},
	}}
}

func TestPoliciesSkipWhatIsOvertaken(t *testing.T) {
	follow(t, func(t *testing.T, p *following) {
		events, end := p.events.Subscribe(16)
		defer end()
		hold, held := make(chan struct{}), make(chan struct{})
		var once sync.Once
		p.fetched = func(wire.CID) error {
			once.Do(func() {
				close(held)
				<-hold
			})
			return nil
		}
		p.want(tinyRelease(1))
		<-held
		for _, version := range []uint64{2, 5, 4} {
			p.want(tinyRelease(version))
		}
		if w := p.fetching(); w == nil || w.release.Version != 5 {
			t.Errorf("next is %+v", w)
		}
		close(hold)
		if err := p.Wait(t.Context(), 4); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		var used []uint64
		for len(events) > 0 {
			used = append(used, (<-events).Policy.Version)
		}
		if diff := cmp.Diff([]uint64{1, 5}, used); diff != "" {
			t.Errorf("versions in use: %s", diff)
		}
		if p.fetching() != nil {
			t.Error("something is still being fetched")
		}
	})
}

func TestPoliciesRetryWithPatience(t *testing.T) {
	follow(t, func(t *testing.T, p *following) {
		began := time.Now()
		var tries []time.Duration
		anchor := tinyRelease(1).Policy.Anchor
		p.fetched = func(cid wire.CID) error {
			if cid != anchor || len(tries) == 7 {
				return nil
			}
			tries = append(tries, time.Since(began))
			return errors.New("nobody has it")
		}
		p.want(tinyRelease(1))
		if err := p.Wait(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		var want []time.Duration
		for _, s := range []int{0, 1, 3, 7, 15, 31, 61} {
			want = append(want, time.Duration(s)*time.Second)
		}
		if diff := cmp.Diff(want, tries); diff != "" {
			t.Errorf("tries: %s", diff)
		}
	})
}

func TestPoliciesRefuseAnotherPolicy(t *testing.T) {
	for name, change := range map[string]func(*wire.PolicyRef){
		"digest":       func(r *wire.PolicyRef) { r.Digest[0]++ },
		"state digest": func(r *wire.PolicyRef) { r.StateDigest[0]++ },
	} {
		t.Run(name, func(t *testing.T) {
			follow(t, func(t *testing.T, p *following) {
				events, end := p.events.Subscribe(16)
				defer end()
				bad := tinyRelease(1)
				change(&bad.Policy)
				p.want(bad)
				if e := <-events; e.Type != api.EventProblem {
					t.Errorf("got %+v", e)
				}
				p.want(tinyRelease(2)) // is tried at once, not after the pause
				began := time.Now()
				if err := p.Wait(t.Context(), 1); err != nil || time.Since(began) != 0 {
					t.Errorf("the good one came after %v, %v", time.Since(began), err)
				}
			})
		})
	}
}

// A session stays open as long as somebody works with its policy, however many versions come meanwhile.
func TestPoliciesPinWhatIsAcquired(t *testing.T) {
	follow(t, func(t *testing.T, p *following) {
		p.want(tinyRelease(1))
		first, err := p.Acquire(t.Context())
		if err != nil || first.Version != 1 {
			t.Fatalf("acquired %+v, %v", first, err)
		}
		again, err := p.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		final := tinyRelease(2)
		final.Final, final.Evaluate, final.GroupsPerVersion = true, true, 7
		p.want(final)
		if err := p.Wait(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		second, err := p.Acquire(t.Context())
		if err != nil || second.Version != 2 || !second.Final || !second.Evaluate || second.GroupsPerVersion != 7 {
			t.Errorf("acquired %+v, %v", second, err)
		}
		synctest.Wait() // The first version is let go of right after the second is told of.
		var open []int
		for _, done := range []func(){func() {}, first.Close, again.Close, second.Close} {
			done()
			open = append(open, p.engine.sessions())
		}
		if diff := cmp.Diff([]int{2, 2, 1, 1}, open); diff != "" {
			t.Errorf("open sessions: %s", diff)
		}
	})
}

func TestPoliciesKeepTheBlocksInUse(t *testing.T) {
	follow(t, func(t *testing.T, p *following) {
		p.want(tinyRelease(1))
		if err := p.Wait(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		pinned, err := p.store.Pinned(policySet)
		if err != nil || len(pinned) != len(p.blocks) {
			t.Errorf("%d blocks are pinned, want %d: %v", len(pinned), len(p.blocks), err)
		}
		for _, cid := range pinned {
			if p.blocks[cid] == nil {
				t.Errorf("%s is no block of the policy", cid)
			}
		}
	})
}

func TestPoliciesWaitEndsWithItsContext(t *testing.T) {
	follow(t, func(t *testing.T, p *following) {
		cause := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, cause)
		defer cancel()
		_, acquired := p.Acquire(ctx)
		for _, err := range []error{p.Wait(ctx, 3), acquired} {
			if !errors.Is(err, cause) {
				t.Errorf("got %v", err)
			}
		}
	})
}
