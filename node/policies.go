package node

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lightswarm/lightswarm/node/api"
	"github.com/lightswarm/lightswarm/node/store"
	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/rollout"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
)

const (
	// blockPatience is how long a node waits for one block of a policy before it starts over.
	blockPatience = 2 * time.Minute
	// A failed download is tried again after firstRetry, then twice as late each time, up to lastRetry.
	firstRetry = time.Second
	lastRetry  = 30 * time.Second

	// The store's pinned sets: the policy in use, and the one that is being fetched.
	policySet   = "policy"
	incomingSet = "policy/incoming"
)

// policies follows releases: it fetches the newest one's policy, loads it into the engine and makes it current, while
// rollouts go on with the one before. It is a rollout.PolicySource. It is safe for concurrent use.
type policies struct {
	store  *store.Store
	events *api.Broadcaster
	log    *slog.Logger
	// engine runs policies; nil on a node that only keeps their blocks for others.
	engine policy.Engine
	class  bundle.EngineClass
	// fetch gets a block from the store or from peers, the hinted ones first.
	fetch func(ctx context.Context, cid wire.CID, hints []wire.PeerID, limit int) ([]byte, error)

	wake chan struct{} // has an element when wanted is new

	installing sync.Mutex // held while a policy becomes current, so that versions only go up

	mu      sync.Mutex
	wanted  *wanted       // the newest release; guarded by mu
	current *inUse        // guarded by mu
	changed chan struct{} // closed and replaced when current changes; guarded by mu
}

// wanted is a release and when it arrived.
type wanted struct {
	release wire.SignedRelease
	arrived time.Time
}

// inUse is a release whose policy sessions run on. Whoever holds it lets go once; the last one closes the session.
type inUse struct {
	release wire.SignedRelease
	policy  *rollout.Policy // nil without an engine
	holders atomic.Int64
}

func (u *inUse) letGo() {
	if u.holders.Add(-1) == 0 && u.policy != nil {
		u.policy.Session.Close()
	}
}

var _ rollout.PolicySource = (*policies)(nil)

func newPolicies(p *policies) *policies {
	p.wake, p.changed = make(chan struct{}, 1), make(chan struct{})
	return p
}

// want makes r the release to follow if it is newer than the ones before.
func (p *policies) want(r wire.SignedRelease) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wanted != nil && r.Version <= p.wanted.release.Version {
		return
	}
	p.wanted = &wanted{r, time.Now()}
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// run follows releases until ctx ends. A download that was begun is finished even if newer releases come, so that slow
// nodes get somewhere; then the newest is next.
func (p *policies) run(ctx context.Context) {
	retry := firstRetry
	for ctx.Err() == nil {
		select {
		case <-p.wake: // What it tells of is looked at now, and must not cut a later pause short.
		default:
		}
		w := p.fetching()
		if w == nil {
			select {
			case <-p.wake:
			case <-ctx.Done():
			}
			continue
		}
		err := p.follow(ctx, *w)
		if err == nil {
			retry = firstRetry
			continue
		}
		if ctx.Err() != nil {
			return
		}
		p.log.Warn("the policy of a release is not available yet; trying again", "version", w.release.Version, "in", retry, "error", err)
		p.events.Publish(api.Event{Type: api.EventProblem, Problem: &api.ProblemEvent{Message: err.Error()}})
		timer := time.NewTimer(retry)
		select {
		case <-timer.C:
		case <-p.wake:
		case <-ctx.Done():
		}
		timer.Stop()
		retry = min(2*retry, lastRetry)
	}
}

// follow fetches a release's policy and makes it current.
func (p *policies) follow(ctx context.Context, w wanted) error {
	snapshot, cids, err := p.download(ctx, w.release)
	if err != nil {
		return fmt.Errorf("fetch the policy of version %d: %w", w.release.Version, err)
	}
	return p.install(ctx, w.release, snapshot, cids, w.arrived)
}

// download gets a policy's blocks and verifies everything. The blocks are pinned as they come, so that a download that
// fails goes on where it stopped.
func (p *policies) download(ctx context.Context, r wire.SignedRelease) (*policy.Snapshot, []wire.CID, error) {
	get := func(ctx context.Context, cid wire.CID) ([]byte, error) {
		ctx, cancel := context.WithTimeout(ctx, blockPatience)
		defer cancel()
		return p.fetch(ctx, cid, []wire.PeerID{r.Signer}, wire.MaxBlockBytes)
	}
	raw, err := get(ctx, r.Policy.Anchor)
	if err != nil {
		return nil, nil, err
	}
	manifest, err := wire.DecodePolicyManifest(raw)
	if err != nil {
		return nil, nil, err
	}
	cids := []wire.CID{r.Policy.Anchor, manifest.Tokenizer}
	for _, b := range manifest.Blocks {
		cids = append(cids, b.CID)
	}
	if err := p.store.SetPins(incomingSet, cids...); err != nil {
		return nil, nil, err
	}
	snapshot, err := policy.Assemble(ctx, r.Policy.Anchor, get)
	if err != nil {
		return nil, nil, err
	}
	if got := snapshot.Digest(); got != r.Policy.Digest {
		return nil, nil, fmt.Errorf("the policy is %s and the release says %s", got.Short(), policy.Digest(r.Policy.Digest).Short())
	}
	if got := snapshot.State; got != r.Policy.StateDigest {
		return nil, nil, fmt.Errorf("the weights are %s and the release says %s", got.Short(), policy.Digest(r.Policy.StateDigest).Short())
	}
	return snapshot, cids, nil
}

// install makes a policy current unless a newer one is. cids are its blocks, which take the place of the pinned ones
// before; since is when its release arrived.
func (p *policies) install(ctx context.Context, r wire.SignedRelease, s *policy.Snapshot, cids []wire.CID, since time.Time) error {
	p.installing.Lock()
	defer p.installing.Unlock()
	if now, _ := p.newest(); now != nil && r.Version <= now.Version {
		return nil
	}
	next := &inUse{release: r}
	next.holders.Store(1) // p itself
	if p.engine != nil {
		if err := p.engine.Load(ctx, s); err != nil {
			return fmt.Errorf("load version %d: %w", r.Version, err)
		}
		session, err := p.engine.Open()
		if err != nil {
			return fmt.Errorf("open version %d: %w", r.Version, err)
		}
		if next.policy, err = rollout.NewPolicy(r.Version, s, session, p.class); err != nil {
			session.Close()
			return err
		}
	}
	if err := p.store.SetPins(policySet, cids...); err != nil {
		next.letGo()
		return fmt.Errorf("keep the policy of version %d: %w", r.Version, err)
	}
	p.mu.Lock()
	old := p.current
	p.current = next
	close(p.changed)
	p.changed = make(chan struct{})
	p.mu.Unlock()
	if old != nil {
		old.letGo()
	}
	p.log.Debug("new policy", "version", r.Version, "policy", s.Digest().Short())
	p.events.Publish(api.Event{Type: api.EventPolicy, Policy: &api.PolicyEvent{
		Version: r.Version, Policy: s.Digest().String(), FetchSeconds: time.Since(since).Seconds(),
	}})
	return nil
}

// newest is the current release; changed is closed when there is a newer one.
func (p *policies) newest() (r *wire.SignedRelease, changed <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current != nil {
		r = &p.current.release
	}
	return r, p.changed
}

// fetching is the release that is wanted and not current; nil if there is none.
func (p *policies) fetching() *wanted {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wanted == nil || p.current != nil && p.wanted.release.Version <= p.current.release.Version {
		return nil
	}
	return p.wanted
}

// Acquire implements rollout.PolicySource.
func (p *policies) Acquire(ctx context.Context) (rollout.Release, error) {
	for {
		p.mu.Lock()
		u, changed := p.current, p.changed
		if u != nil {
			u.holders.Add(1)
		}
		p.mu.Unlock()
		if u != nil {
			return rollout.Release{
				Policy:           u.policy,
				Evaluate:         u.release.Evaluate,
				GroupsPerVersion: u.release.GroupsPerVersion,
				Final:            u.release.Final,
				Close:            u.letGo,
			}, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return rollout.Release{}, context.Cause(ctx)
		}
	}
}

// Wait implements rollout.PolicySource.
func (p *policies) Wait(ctx context.Context, version uint64) error {
	for {
		now, changed := p.newest()
		if now != nil && now.Version > version {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// close lets go of the current policy. Nobody acquires one afterwards.
func (p *policies) close() {
	p.mu.Lock()
	u := p.current
	p.current = nil
	p.mu.Unlock()
	if u != nil {
		u.letGo()
	}
}
