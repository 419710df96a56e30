package lags

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/lightswarm/lightswarm/learner"
	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/policy/embedded"
	"github.com/lightswarm/lightswarm/rollout"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
)

// fleet stands for the network between one learner and its rollout nodes: what either side hands over arrives at once.
// It keeps its own account of what was sampled with which version and trained at which, and asks neither side for it.
// It is safe for concurrent use.
type fleet struct {
	engine *embedded.Engine
	waits  waits
	// offer takes announcements to the learner. It is set before a node starts.
	offer func(wire.SignedAnnouncement) learner.Verdict

	mu       sync.Mutex
	newest   wire.SignedRelease       // guarded by mu
	snapshot *policy.Snapshot         // guarded by mu; of the newest release
	released chan struct{}            // guarded by mu; closed when there is a newer one
	bodies   map[wire.CID][]byte      // guarded by mu; announced, and not fetched yet
	sampled  map[wire.CID]uint64      // guarded by mu; the version of each announced group
	running  map[wire.PeerID][]uint64 // guarded by mu; the versions of each node's groups in flight
	lags     map[uint64]int           // guarded by mu; the groups trained on, by lag
}

func newFleet(engine *embedded.Engine, w waits) *fleet {
	return &fleet{
		engine: engine, waits: w,
		released: make(chan struct{}),
		bodies:   make(map[wire.CID][]byte),
		sampled:  make(map[wire.CID]uint64),
		running:  make(map[wire.PeerID][]uint64),
		lags:     make(map[uint64]int),
	}
}

// Publish implements learner.Publisher.
func (f *fleet) Publish(ctx context.Context, r wire.SignedRelease, s *policy.Snapshot) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.engine.Load(ctx, s); err != nil {
		return fmt.Errorf("loading version %d: %w", r.Version, err)
	}
	f.newest, f.snapshot = r, s
	close(f.released)
	f.released = make(chan struct{})
	return nil
}

// Fetch implements learner.Fetcher.
func (f *fleet) Fetch(_ context.Context, cid wire.CID, _ wire.PeerID, _ int) ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	body, ok := f.bodies[cid]
	if !ok {
		return nil, fmt.Errorf("nobody has bundle %s", cid)
	}
	delete(f.bodies, cid)
	return body, nil
}

// Acquire implements rollout.PolicySource.
func (f *fleet) Acquire(ctx context.Context) (rollout.Release, error) {
	if err := f.wait(ctx, func() bool { return f.snapshot != nil }); err != nil {
		return rollout.Release{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	p, err := f.open(f.waits)
	if err != nil {
		return rollout.Release{}, err
	}
	return rollout.Release{
		Policy: p, GroupsPerVersion: f.newest.GroupsPerVersion, Final: f.newest.Final, Close: p.Session.Close,
	}, nil
}

// open returns the newest version, whose calls wait. The caller closes its session, and holds f.mu while nodes work.
func (f *fleet) open(w waits) (*rollout.Policy, error) {
	session, err := f.engine.Open()
	if err != nil {
		return nil, fmt.Errorf("opening version %d: %w", f.newest.Version, err)
	}
	p, err := rollout.NewPolicy(f.newest.Version, f.snapshot, slow{session, w}, bundle.EngineExact)
	if err != nil {
		session.Close()
	}
	return p, err
}

// Wait implements rollout.PolicySource.
func (f *fleet) Wait(ctx context.Context, version uint64) error {
	return f.wait(ctx, func() bool { return f.newest.Version > version })
}

// wait returns when ready holds, which is called with f.mu held, or ctx's error.
func (f *fleet) wait(ctx context.Context, ready func() bool) error {
	for {
		f.mu.Lock()
		done, released := ready(), f.released
		f.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-released:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Claim implements rollout.Evaluations: the check measures policies by itself.
func (f *fleet) Claim(uint64, wire.Purpose, uint64) rollout.Claim { return rollout.Settled }

// start counts a group in.
func (f *fleet) start(node wire.PeerID, version uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running[node] = append(f.running[node], version)
}

// announce counts a group out, and offers it to the learner.
func (f *fleet) announce(node wire.PeerID, a wire.Announcement, body []byte) {
	f.mu.Lock()
	mine := f.running[node]
	i := slices.Index(mine, a.PolicyVersion)
	f.running[node] = slices.Delete(mine, i, i+1)
	f.bodies[a.Bundle], f.sampled[a.Bundle] = body, a.PolicyVersion
	f.mu.Unlock()
	f.offer(wire.SignedAnnouncement{Announcement: a, Signer: node})
}

// trained counts a group that the learner takes for the step after the newest release.
func (f *fleet) trained(cid wire.CID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lags[f.newest.Version-f.sampled[cid]]++
}

// account is what became of the groups by now: those trained on by lag, and how many in flight lag more than a bound.
func (f *fleet) account(bound uint64) (lags map[uint64]int, late int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, versions := range f.running {
		for _, v := range versions {
			if f.newest.Version-v > bound {
				late++
			}
		}
	}
	return maps.Clone(f.lags), late
}

// node is what one rollout worker needs of the fleet.
type node struct {
	*fleet
	peer wire.PeerID

	mu   sync.Mutex
	next uint64 // guarded by mu; the next draw counter
}

// Resume implements rollout.Counters: a node starts once.
func (n *node) Resume(context.Context, uint64) ([]uint64, error) { return nil, nil }

// Reserve implements rollout.Counters.
func (n *node) Reserve(_ context.Context, version uint64) (uint64, error) {
	n.start(n.peer, version)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.next++
	return n.next - 1, nil
}

// Announce implements rollout.Announcer.
func (n *node) Announce(_ context.Context, a wire.Announcement, body []byte) error {
	n.announce(n.peer, a, body)
	return nil
}

// store is a learner's store that tells the fleet which groups the learner takes to train on: it reads no others.
type store struct {
	learner.Store
	fleet *fleet
}

// Bundle implements learner.Store.
func (s store) Bundle(ctx context.Context, cid wire.CID) ([]byte, error) {
	s.fleet.trained(cid)
	return s.Store.Bundle(ctx, cid)
}
