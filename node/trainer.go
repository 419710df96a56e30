package node

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lightswarm/lightswarm/learner"
	"github.com/lightswarm/lightswarm/node/api"
	"github.com/lightswarm/lightswarm/p2p/gossip"
	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/wire"
)

// trainer is the node's learner role.
type trainer struct {
	learner   *learner.Learner
	batch     learner.BatchRule
	cursors   *cursors
	standings *standings
	finished  atomic.Bool
	training  *training

	mu       sync.Mutex
	accepted uint64                    // rollouts of training bundles; guarded by mu
	refused  map[learner.Reason]uint64 // the same, by reason; guarded by mu
}

// ErrNotLearner says that the charter does not let the node release.
var ErrNotLearner = errors.New("this data folder's peer is no learner of its network: the charter names the peers that may release")

// openTrainer opens the learner on the node's store.
func (n *Node) openTrainer(ctx context.Context) (*trainer, error) {
	if !slices.Contains(n.charter.Learners, n.key.Peer()) {
		return nil, ErrNotLearner
	}
	base, err := policy.Assemble(ctx, n.charter.Base.Anchor, func(_ context.Context, cid wire.CID) ([]byte, error) { return n.store.Get(cid) })
	if err != nil {
		return nil, fmt.Errorf("the base policy of network %q is not on this node; run its learner where the network was founded: %w", n.charter.Name, err)
	}
	t := &trainer{cursors: newCursors(n.store), standings: newStandings(), refused: make(map[learner.Reason]uint64)}
	c, err := n.learnerConfig(base, t)
	if err != nil {
		return nil, err
	}
	t.batch, t.training = c.Batch, n.openTraining(c.MaxLag)
	t.learner, err = learner.Open(ctx, c)
	return t, err
}

// learnerConfig joins settings and parts.
func (n *Node) learnerConfig(base *policy.Snapshot, t *trainer) (learner.Config, error) {
	settings := n.options.Config.Learner
	workers := settings.Workers
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	embedded, err := learner.NewEmbedded(base, workers)
	if err != nil {
		return learner.Config{}, err
	}
	var model learner.Trainer = embedded
	if replace := n.options.Trainer; replace != nil {
		model = replace(model)
	}
	c, err := LearnerConfig(settings)
	if err != nil {
		return learner.Config{}, err
	}
	c.Charter, c.Key, c.Base, c.Trainer, c.Store = n.charter, n.key, base, model, n.store.Learner()
	c.Fetcher, c.Publisher = fetcher{n}, publisher{n}
	c.Observer = observer{n, t}
	c.Active = n.activeRolloutNodes
	c.Manifests = make(map[wire.CID]wire.EnvironmentManifest)
	for _, e := range n.charter.Environments {
		if m, err := n.manifest(e.Manifest); err == nil {
			c.Manifests[e.Manifest] = m
		}
	}
	return c, nil
}

// presentFor is how long after its last sign of life a node counts as being at work.
const presentFor = 3 * presenceInterval

// activeRolloutNodes counts the connected rollout nodes that gave a sign of life lately, and the node itself.
func (n *Node) activeRolloutNodes() int {
	active := 0
	if n.roles.Has(wire.RoleRollout) {
		active++
	}
	now := time.Now()
	for _, p := range n.network.Peers() {
		if p.Presence.Roles.Has(wire.RoleRollout) && now.Sub(p.Presence.Created) < presentFor {
			active++
		}
	}
	return active
}

// fetcher implements learner.Fetcher.
type fetcher struct{ n *Node }

// Fetch gets a bundle from the store or from peers.
func (f fetcher) Fetch(ctx context.Context, cid wire.CID, from wire.PeerID, limit int) ([]byte, error) {
	return f.n.network.Fetch(ctx, cid, []wire.PeerID{from}, limit)
}

// publisher implements learner.Publisher.
type publisher struct{ n *Node }

// Publish stores the policy's blocks, makes the release the node's own head and tells others.
func (p publisher) Publish(ctx context.Context, r wire.SignedRelease, s *policy.Snapshot) error {
	n := p.n
	anchor, blocks, err := s.Encode()
	if err != nil {
		return err
	}
	if anchor != r.Policy.Anchor {
		return fmt.Errorf("publish version %d: the policy's blocks are anchored at %s, the release says %s", r.Version, anchor, r.Policy.Anchor)
	}
	data := make(map[wire.CID][]byte, len(blocks))
	cids := make([]wire.CID, len(blocks))
	for i, b := range blocks {
		data[b.CID], cids[i] = b.Data, b.CID
	}
	if err := n.store.SetPins(incomingSet, cids...); err != nil {
		return err
	}
	if err := n.store.PutPinned(incomingSet, data); err != nil {
		return err
	}
	if err := n.follow(r); errors.Is(err, errOld) && n.head().ID != r.ID {
		return n.overtaken(*n.head())
	} else if err != nil && !errors.Is(err, errOld) {
		return fmt.Errorf("publish version %d: %w", r.Version, err)
	}
	if err := n.policies.install(ctx, r, s, cids, time.Now()); err != nil {
		return err
	}
	n.presence.hurry()
	if err := n.network.PublishRelease(ctx, r.Raw); err != nil && !errors.Is(err, gossip.ErrNobody) {
		return fmt.Errorf("publish version %d: %w", r.Version, err)
	}
	return nil
}

// observer tells the node, its subscribers and the caller's observer what the learner does.
type observer struct {
	n *Node
	t *trainer
}

var _ learner.Observer = observer{}

// Stepped implements learner.Observer.
func (o observer) Stepped(s learner.Step) {
	figures := []any{"version", s.Version, "groups", s.Groups, "learned", s.Learned}
	if s.Rollouts > 0 {
		figures = append(figures, "reward", s.RewardMean)
	}
	o.n.log.Info("training step", figures...)
	o.n.events.Publish(api.Event{Type: api.EventStep, Step: stepJSON(&s)})
	o.t.training.stepped(s)
	if next := o.n.options.Observer; next != nil {
		next.Stepped(s)
	}
}

// Evaluated implements learner.Observer.
func (o observer) Evaluated(e learner.Evaluation) {
	if e.Complete() {
		shown := evaluationJSON(e)
		o.n.log.Info("evaluation", "version", e.Version, "purpose", shown.Purpose, "success", e.Success())
		o.n.events.Publish(api.Event{Type: api.EventEvaluation, Evaluation: &shown})
		o.n.presence.hurry() // Nobody needs to measure it again.
		o.t.training.evaluated(e)
	}
	if next := o.n.options.Observer; next != nil {
		next.Evaluated(e)
	}
}

// Judged implements learner.Observer.
func (o observer) Judged(a *wire.SignedAnnouncement, v learner.Verdict) {
	o.t.count(a, v)
	o.t.standings.judge(a.Signer, v)
	if a.Signer != o.n.key.Peer() {
		if err := o.t.cursors.judged(a.Signer, a.Sequence, v.Accepted()); err != nil {
			o.n.log.Error("a cursor was not kept", "peer", a.Signer, "error", err)
		}
	}
	o.n.events.Publish(api.Event{Type: api.EventVerdict, Verdict: &api.VerdictEvent{
		CID: a.Bundle.String(), Peer: a.Signer.String(), Purpose: a.Purpose.String(), Version: a.PolicyVersion,
		Rollouts: int(a.Rollouts), CompletionTokens: int(a.CompletionTokens), Accepted: v.Accepted(), Reason: string(v.Reason), Detail: v.Detail,
	}})
	if next := o.n.options.Observer; next != nil {
		next.Judged(a, v)
	}
}

// Released implements learner.Observer.
func (o observer) Released(r wire.SignedRelease) {
	if next := o.n.options.Observer; next != nil {
		next.Released(r)
	}
}

// count adds up the rollouts of training bundles.
func (t *trainer) count(a *wire.SignedAnnouncement, v learner.Verdict) {
	if a.Purpose != wire.PurposeTrain {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if v.Accepted() {
		t.accepted += uint64(a.Rollouts)
	} else {
		t.refused[v.Reason] += uint64(a.Rollouts)
	}
}
