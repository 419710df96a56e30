package learner

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/lightswarm/lightswarm/learner/advantage"
	"github.com/lightswarm/lightswarm/learner/credit"
	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/wire"
)

// found makes version 0, the base policy as it is.
func (l *Learner) found(ctx context.Context) error {
	release, err := l.release(l.snapshot, 0, 0, false)
	if err != nil {
		return err
	}
	if want := l.rules.Charter.Base; release.Policy != want {
		return fmt.Errorf("version 0 is anchored at %s, the charter's base at %s: the base policy was encoded otherwise",
			release.Policy.Anchor, want.Anchor)
	}
	return l.commit(ctx, version{release: release, snapshot: l.snapshot})
}

// version is a version about to be committed.
type version struct {
	release  wire.SignedRelease
	snapshot *policy.Snapshot
	// groups are used up by it, of which drops taught nothing.
	groups []group
	drops  map[Reason]int
	// totals are the chain's, this version included.
	totals totals
	memory advantage.Memory
	critic credit.Memory
	yield  Yield
}

// step trains on a batch, makes the result durable as the next version and publishes it. A version is made even when
// the weights stay as they are, so that nodes draw new tasks. An empty batch makes a version of the same weights.
func (l *Learner) step(ctx context.Context, batch []Record, final bool) error {
	started := l.config.Now()
	groups, err := l.groups(ctx, batch)
	if err != nil {
		return err
	}
	a, err := l.remembering(groups)
	if err != nil {
		return err
	}
	p := a.plan(&l.rules, groups)
	report := l.report(groups, p)
	report.Waited = started.Sub(l.since)
	if len(groups) == 0 {
		report.Skipped = "the chain ends"
	}
	if err := l.learn(p, &report); err != nil {
		return fmt.Errorf("training version %d: %w", report.Version, err)
	}
	snapshot, memory, critic := l.snapshot, l.memory, l.critic
	if report.Skipped == "" {
		memory = p.memory
		if critic, err = l.teach(a, groups); err != nil {
			return err
		}
		if snapshot, err = l.released(); err != nil {
			return fmt.Errorf("training version %d: %w", report.Version, err)
		}
	}

	report.Final = final || l.config.Stop.Reached(report.Version, nil)
	yield := l.yield.After(report.Groups, report.Learned)
	report.Yield = yield.Part()
	sum := l.pace(&report, yield)
	release, err := l.release(snapshot, report.Quota, sum.groups, report.Final)
	if err != nil {
		return err
	}
	if err := l.commit(ctx, version{release, snapshot, groups, p.drops, sum, memory, critic, yield}); err != nil {
		return err
	}
	report.Trained = l.config.Now().Sub(started)
	if err := l.publish(ctx); err != nil {
		return err
	}
	l.config.Observer.Stepped(report)
	return nil
}

// groups reads the bundles of a batch back from the store.
func (l *Learner) groups(ctx context.Context, batch []Record) ([]group, error) {
	groups := make([]group, 0, len(batch))
	for _, r := range batch {
		b, err := l.load(ctx, r)
		if err != nil {
			return nil, err
		}
		head := l.head.Version
		groups = append(groups, group{record: r, bundle: b, lag: head - min(head, r.Version)})
	}
	return groups, nil
}

// report starts the description of a step with what its groups show.
func (l *Learner) report(groups []group, p plan) Step {
	s := Step{
		Version:  l.head.Version + 1,
		Groups:   len(groups),
		Learned:  p.learned,
		Rollouts: p.rollouts,
		Lags:     make(map[uint64]int),
		Drops:    maps.Clone(p.drops),

		CriticExplained: p.explained,
	}
	if p.rollouts > 0 {
		s.RewardMean = p.rewards / float64(p.rollouts)
		s.Solved = float64(p.solved) / float64(p.rollouts)
	}
	for _, g := range groups {
		s.Lags[g.lag]++
	}
	s.show(&l.rules, groups, p)
	return s
}

// learn updates the trainer, or leaves it as it was and says why in the report.
func (l *Learner) learn(p plan, report *Step) error {
	if p.learned == 0 && report.Skipped == "" {
		report.Skipped = "no group had anything to learn from"
	}
	if report.Skipped != "" {
		return nil
	}
	a := l.config.Algorithm
	// A gradient of fewer groups is noisier. Late in a chain most groups are all right, and the few that are not must not
	// undo what was learned. So the gradient is that of a full batch in which the others have nothing to say; and since
	// Adam's steps hardly shrink with it, they are scaled by the square root of the part that teaches (Malladi et al. 2022,
	// arXiv 2205.10287). How many flat groups came along makes no difference.
	part := min(1, float64(p.learned)/float64(l.config.Batch.Groups))
	p.weaken(part)
	report.LearningRate = a.Schedule.Rate(report.Version) * math.Sqrt(part)
	stats, norm, updates, undo, err := a.update(l.config.Trainer, p.minibatches, report.LearningRate)
	if err != nil {
		return err
	}
	report.describe(stats, norm, updates)
	if undo != "" {
		report.Skipped, report.Updates = undo, 0
		return l.config.Trainer.Restore(l.saved)
	}
	return nil
}

// describe fills in what the trained tokens showed.
func (s *Step) describe(t tokenStats, norm float64, updates int) {
	s.Rows, s.Tokens, s.TrainedTokens = t.rows, t.tokens, t.trained
	s.GradientNorm, s.Updates = norm, updates
	if updates == 0 {
		s.GradientNorm = math.NaN() // the first gradient was not finite
	}
	s.Loss = t.loss / float64(max(updates, 1))
	s.RatioMax, s.OnPolicyError, s.OnPolicyTokens = t.ratioMax, t.onPolicyError, t.onPolicyTokens
	if n := float64(t.trained); n > 0 {
		s.Clipped, s.RatioMean, s.KL, s.Entropy = float64(t.clipped)/n, t.ratio/n, t.kl/n, t.entropy/n
	}
	if t.ratioSquares > 0 {
		s.EffectiveSamples = float64(t.ratio*t.ratio) / (float64(t.trained) * t.ratioSquares)
	}
}

// pace decides how many groups the next release asks of each node, and adds up what the chain has learned from.
func (l *Learner) pace(report *Step, yield Yield) totals {
	active := -1
	if l.config.Active != nil {
		active = l.config.Active()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if active < 0 {
		active = l.state.Active()
	}
	report.Active, report.Waiting = active, l.buffer.Len()
	coming := report.Waiting + l.fetching + l.queue.size
	report.Quota = l.config.Pace.Quota(l.config.Batch.Expect(yield), coming, active)
	if l.expired > 0 {
		report.Drops[StaleAtUse] += l.expired
	}
	sum := l.totals
	if report.Skipped == "" {
		sum.groups += uint64(report.Learned)
		sum.tokens += uint64(report.TrainedTokens)
	}
	report.GroupsTrained = sum.groups
	return sum
}

// commit makes a version durable together with the trainer's state and what it used up, and only then lets it count.
func (l *Learner) commit(ctx context.Context, v version) error {
	trainer, err := l.config.Trainer.State()
	if err != nil {
		return fmt.Errorf("saving the trainer of version %d: %w", v.release.Version, err)
	}
	c, used, err := l.checkpoint(v, trainer)
	if err != nil {
		return err
	}
	if err := l.config.Store.Commit(ctx, c); err != nil {
		return fmt.Errorf("storing version %d: %w", v.release.Version, err)
	}
	l.saved, l.snapshot, l.memory, l.critic, l.yield = trainer, v.snapshot, v.memory, v.critic, v.yield

	l.mu.Lock()
	defer l.mu.Unlock()
	for _, g := range v.groups {
		l.state.Consume(g.record)
	}
	for reason, n := range v.drops {
		l.reasons[reason] += uint64(n)
	}
	l.state.Release(behaviour(v.release))
	if v.release.Final {
		l.state.End()
	}
	l.board.Close(l.state.OldestEvaluated())
	l.used = slices.Delete(l.used, 0, used)
	l.head, l.totals, l.expired, l.training = v.release, v.totals, 0, false
	return nil
}

// checkpoint describes the learner as it will be once the version counts. used is how many entries of l.used it
// consumes; more may come while it is written.
func (l *Learner) checkpoint(v version, trainer []byte) (c Checkpoint, used int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := progress{
		nextOrder:     l.order,
		groupsTrained: v.totals.groups,
		tokensTrained: v.totals.tokens,
		reasons:       maps.Clone(l.reasons),
		behaviours:    append(l.state.Versions(), behaviour(v.release)),
		board:         l.board,
		memory:        v.memory,
		critic:        v.critic,
		yield:         v.yield,
		file:          l.file,
	}
	for reason, n := range v.drops {
		p.reasons[reason] += uint64(n)
	}
	encoded, err := p.encode()
	if err != nil {
		return Checkpoint{}, 0, err
	}
	c = Checkpoint{
		Version:  v.release.Version,
		Release:  v.release.Raw,
		Trainer:  trainer,
		Progress: encoded,
		Consumed: slices.Clone(l.used),
		Oldest:   l.state.Oldest(),
	}
	for _, g := range v.groups {
		c.Consumed = append(c.Consumed, g.record.CID)
	}
	return c, len(l.used), nil
}

// publish makes the head known.
func (l *Learner) publish(ctx context.Context) error {
	if err := l.config.Publisher.Publish(ctx, l.head, l.snapshot); err != nil {
		return fmt.Errorf("publishing version %d: %w", l.head.Version, err)
	}
	l.since = l.config.Now()
	l.config.Observer.Released(l.head)
	signal(l.work)
	return nil
}
