package learner

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/lightswarm/lightswarm/learner/advantage"
	"github.com/lightswarm/lightswarm/learner/credit"
	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
)

// Learner trains one policy on one network. Its methods are safe for concurrent use; Run is called once.
type Learner struct {
	config Config
	rules  Rules
	decode bundle.Limits // what no valid bundle exceeds

	mu       sync.Mutex
	state    *State             // guarded by mu
	board    *Board             // guarded by mu
	buffer   *Buffer            // guarded by mu
	queue    *queue             // guarded by mu
	fetching int                // guarded by mu; bundles between queue and store
	bytes    int                // guarded by mu; their announced size
	reasons  map[Reason]uint64  // guarded by mu
	order    uint64             // guarded by mu; of the next accepted bundle
	used     []wire.CID         // guarded by mu; evaluations counted and groups expired since the last checkpoint
	expired  int                // guarded by mu; the groups among used
	due      time.Time          // guarded by mu; when the next step begins if no group comes, zero if it does not
	head     wire.SignedRelease // guarded by mu, and changed by the training loop alone; zero before version 0
	totals   totals             // guarded by mu
	training bool               // guarded by mu; a step has its groups, and its version is not durable yet

	// work tells the dispatcher, and ready the training loop, that something changed.
	work, ready chan struct{}

	// The training loop owns these.
	saved    []byte           // the trainer's state at the head
	snapshot *policy.Snapshot // the head's policy
	memory   advantage.Memory // what its algorithm remembers, if it does
	critic   credit.Memory    // and what its critic has learned
	yield    Yield            // of the steps up to it
	since    time.Time        // when the head was published
	// file is the last one that a learner of a folder has read, and ahead are the bundles that it accepted after the
	// checkpoint it continues from: their files come again, and are passed over.
	file  string
	ahead map[wire.CID]bool
}

// totals count over the whole chain.
type totals struct{ groups, tokens uint64 }

// Open checks the configuration and loads what the store holds. The context bounds the loading alone.
func Open(ctx context.Context, c Config) (*Learner, error) {
	if c.Observer == nil {
		c.Observer = Nobody{}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("learner: %w", err)
	}
	rules, err := NewRules(c.Charter, c.Base, c.Trainer.Context(), c.Manifests)
	if err != nil {
		return nil, fmt.Errorf("learner: %w", err)
	}
	if !c.offline {
		rules.MaxPending = c.Intake.PeerPending
	}
	rollouts := int(max(c.Charter.Rollout.GroupSize, c.Charter.Evaluation.BlockTasks))
	if c.MaxLag != nil {
		rules.MaxLag = *c.MaxLag
	}
	l := &Learner{
		config:  c,
		rules:   rules,
		decode:  bundle.Limits{Rollouts: rollouts, Tokens: rollouts * int(c.Charter.Rollout.MaxCalls) * rules.Context},
		buffer:  NewBuffer(c.Batch),
		queue:   newQueue(c.Intake.Queue, c.Intake.Fetches),
		reasons: make(map[Reason]uint64),
		ahead:   make(map[wire.CID]bool),
		board:   NewBoard(rules),
		work:    make(chan struct{}, 1),
		ready:   make(chan struct{}, 1),
	}
	if l.snapshot, err = l.released(); err != nil {
		return nil, fmt.Errorf("learner: %w", err)
	}
	if l.snapshot.State != c.Base.State {
		return nil, fmt.Errorf("learner: the base policy's weights are not those that its trainer releases: they must be bf16")
	}
	recovery, err := c.Store.Load(ctx)
	if err == nil {
		err = l.recover(ctx, recovery)
	}
	if err != nil {
		return nil, fmt.Errorf("learner: continuing from the store: %w", err)
	}
	return l, nil
}

// recover continues from what the store holds.
func (l *Learner) recover(ctx context.Context, r Recovery) error {
	var chain []Behaviour
	if r.Checkpoint != nil {
		var err error
		if chain, err = l.recoverCheckpoint(*r.Checkpoint); err != nil {
			return err
		}
	}
	l.state = NewState(l.rules, l.board)
	for _, b := range l.config.Behaviours {
		l.state.Welcome(b)
	}
	for _, b := range chain {
		l.state.Release(b)
	}
	if l.head.Final {
		l.state.End()
	}
	now := l.config.Now()
	for _, record := range r.Records {
		if record.Order >= l.order {
			l.order = record.Order + 1
			l.reasons[Admitted]++ // the checkpoint's counters are older
			l.ahead[record.CID] = true
		}
		l.state.Settle(record)
		switch {
		case record.Consumed:
		case record.Purpose == wire.PurposeTrain:
			teaches := false
			if l.config.Batch.dynamic() {
				b, err := l.load(ctx, record)
				if err != nil {
					return err
				}
				teaches = l.teaches(b)
			}
			l.buffer.Add(record, teaches, now)
		default:
			b, err := l.load(ctx, record)
			if err != nil {
				return err
			}
			l.board.Add(b)
			l.state.Consume(record)
			l.used = append(l.used, record.CID)
		}
	}
	return nil
}

// recoverCheckpoint returns the recent versions, oldest first.
func (l *Learner) recoverCheckpoint(c Checkpoint) (chain []Behaviour, err error) {
	release, err := wire.OpenRelease(c.Release)
	if err != nil {
		return nil, fmt.Errorf("release of version %d: %w", c.Version, err)
	}
	if release.Network != l.rules.Network {
		return nil, fmt.Errorf("the checkpoint is of network %s, this is %s: use another folder", release.Network, l.rules.Network)
	}
	p, err := decodeProgress(c.Progress, l.rules)
	if err != nil {
		return nil, err
	}
	if err := l.config.Trainer.Restore(c.Trainer); err != nil {
		return nil, fmt.Errorf("trainer of version %d: %w", c.Version, err)
	}
	snapshot, err := l.released()
	if err != nil {
		return nil, err
	}
	if got, want := snapshot.Digest(), policy.Digest(release.Policy.Digest); got != want {
		return nil, fmt.Errorf("the checkpoint of version %d holds policy %s, its release is of %s", c.Version, got.Short(), want.Short())
	}
	l.head, l.saved, l.snapshot, l.memory, l.critic = release, c.Trainer, snapshot, p.memory, p.critic
	l.order, l.reasons, l.board, l.file = p.nextOrder, p.reasons, p.board, p.file
	l.yield = p.yield
	l.totals = totals{groups: p.groupsTrained, tokens: p.tokensTrained}
	return p.behaviours, nil
}

// released returns the trainer's weights as a policy.
func (l *Learner) released() (*policy.Snapshot, error) {
	tensors, err := l.config.Trainer.Released()
	if err != nil {
		return nil, fmt.Errorf("reading the trainer's weights: %w", err)
	}
	return l.config.Base.WithTensors(tensors)
}

// load reads an accepted bundle back.
func (l *Learner) load(ctx context.Context, r Record) (*bundle.Bundle, error) {
	raw, err := l.config.Store.Bundle(ctx, r.CID)
	if err != nil {
		return nil, fmt.Errorf("reading an accepted bundle: %w", err)
	}
	b, err := bundle.Decode(raw, l.decode)
	if err != nil {
		return nil, fmt.Errorf("reading accepted bundle %s: %w", r.CID, err)
	}
	return b, nil
}

// signal wakes the goroutine that waits on c, now or when it next waits.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Status is a snapshot of a learner.
type Status struct {
	// Head is the newest release; its Raw is empty before version 0 exists.
	Head wire.SignedRelease
	// Queued announcements wait for their fetch, Fetching bundles are on their way to the store, Waiting groups to be
	// trained on.
	Queued, Fetching, Waiting int
	// Teaching is how many of the Waiting have something to learn from; 0 where BatchRule.Dynamic is 1 and no step asks.
	Teaching int
	// Training says that a step is under way, which makes the version after Head.
	Training bool
	// Due is when the next step begins even if no group comes; zero if it waits for one for ever.
	Due time.Time
	// GroupsTrained and TokensTrained count what the chain has learned from.
	GroupsTrained, TokensTrained uint64
	// Reasons counts verdicts and unused groups by reason since the chain began; a restart goes back to the counts of
	// the last checkpoint, but for accepted bundles.
	Reasons     map[Reason]uint64
	Evaluations []Evaluation
	// Peers are those that contributed to recent versions.
	Peers map[wire.PeerID]PeerStatus
}

// PeerStatus is what a learner knows about a peer.
type PeerStatus struct {
	// Pending is how many of its bundles are on their way or wait.
	Pending int
	// Version is the newest that it contributed to.
	Version uint64
	// Missing is how many draw counters it passed over: groups that it ran, or should have run, and that were not
	// accepted. Bundles that are still on their way count too.
	Missing uint64
}

// Status returns a snapshot.
func (l *Learner) Status() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := Status{
		Head:          l.head,
		Queued:        l.queue.size,
		Fetching:      l.fetching,
		Waiting:       l.buffer.Len(),
		Teaching:      l.buffer.Teaching(),
		Training:      l.training,
		Due:           l.due,
		GroupsTrained: l.totals.groups,
		TokensTrained: l.totals.tokens,
		Reasons:       maps.Clone(l.reasons),
		Evaluations:   l.board.Evaluations(),
		Peers:         make(map[wire.PeerID]PeerStatus),
	}
	for id, p := range l.state.peers {
		s.Peers[id] = PeerStatus{Pending: p.pending, Version: p.version, Missing: p.missing}
	}
	return s
}
