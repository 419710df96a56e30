package learner

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/lightswarm/lightswarm/learner/credit"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
)

// arrival is a fetched bundle that passed its own checks, on its way to the store.
type arrival struct {
	announcement *wire.SignedAnnouncement
	raw          []byte
	evaluation   *bundle.Bundle // nil for training, whose groups are read back from the store when their turn comes
	teaches      bool           // of training: there is something to learn from it
}

// Offer hands the learner an announcement whose signature was verified, from gossip or from another peer's head. It
// never blocks. The verdict is the one before the fetch: Admitted means that the bundle will be fetched, and the
// Observer is told what became of it. The learner keeps a.
func (l *Learner) Offer(a wire.SignedAnnouncement) Verdict {
	l.mu.Lock()
	v := l.state.Screen(&a)
	var dropped *job
	if v.Accepted() {
		l.state.Claim(&a)
		dropped = l.push(job{announcement: &a})
	} else {
		l.reasons[v.Reason]++
	}
	l.mu.Unlock()
	if dropped != nil {
		l.config.Observer.Judged(dropped.announcement, Verdict{Reason: QueueFull})
		if dropped.announcement == &a {
			return Verdict{Reason: QueueFull}
		}
	}
	if !v.Accepted() {
		l.config.Observer.Judged(&a, v)
		return v
	}
	signal(l.work)
	return v
}

// push queues a job and forgets the one that the queue drops for it. l.mu is held.
func (l *Learner) push(j job) (dropped *job) {
	if dropped = l.queue.push(j); dropped != nil {
		l.state.Unclaim(dropped.announcement)
		l.reasons[QueueFull]++
	}
	return dropped
}

// intake fetches, checks and stores bundles until ctx ends or the store fails.
func (l *Learner) intake(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	jobs := make(chan job)
	arrivals := make(chan arrival, l.config.Intake.Sync)
	decoding := make(chan struct{}, l.config.Intake.Decoders)

	var workers sync.WaitGroup
	for range l.config.Intake.Fetches {
		workers.Go(func() {
			for j := range jobs {
				l.fetch(ctx, j, decoding, arrivals)
			}
		})
	}
	workers.Go(func() {
		defer close(jobs)
		l.dispatch(ctx, jobs)
	})
	go func() {
		workers.Wait()
		close(arrivals)
	}()
	err := l.store(ctx, arrivals)
	cancel()
	for range arrivals { // until all goroutines have ended
	}
	return err
}

// dispatch gives jobs to the workers as long as there is room for what they bring.
func (l *Learner) dispatch(ctx context.Context, jobs chan<- job) {
	for {
		j, ok, retry := l.next()
		if ok {
			select {
			case jobs <- j:
				continue
			case <-ctx.Done():
				return
			}
		}
		var timer <-chan time.Time
		if !retry.IsZero() {
			timer = time.After(retry.Sub(l.config.Now()))
		}
		select {
		case <-l.work:
		case <-timer:
		case <-ctx.Done():
			return
		}
	}
}

// next takes a job from the queue, or says when to ask again.
func (l *Learner) next() (j job, ok bool, retry time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	full := l.buffer.Len()+l.fetching >= l.config.Intake.Waiting
	if l.head.Final {
		full = l.fetching >= l.config.Intake.Waiting // no group is stored any more
	}
	if full || l.bytes >= l.config.Intake.Bytes {
		return job{}, false, time.Time{}
	}
	j, ok, retry = l.queue.pop(l.config.Now())
	if ok {
		l.fetching++
		l.bytes += int(j.announcement.BundleBytes)
	}
	return j, ok, retry
}

// landed ends what next began. l.mu is held.
func (l *Learner) landed(a *wire.SignedAnnouncement) {
	l.fetching--
	l.bytes -= int(a.BundleBytes)
	l.queue.done(a.Signer)
}

// fetch gets one bundle and checks it.
func (l *Learner) fetch(ctx context.Context, j job, decoding chan struct{}, arrivals chan<- arrival) {
	a := j.announcement
	raw, err := l.fetchRaw(ctx, a)
	if err != nil {
		l.failed(ctx, j, err)
		return
	}
	select {
	case decoding <- struct{}{}:
	case <-ctx.Done():
		return
	}
	b, v := l.examine(a, raw)
	var arrived arrival
	if v.Accepted() {
		arrived = l.arrived(a, raw, b)
	}
	<-decoding
	if !v.Accepted() {
		l.refuse(a, v)
		return
	}
	select {
	case arrivals <- arrived:
	case <-ctx.Done():
	}
}

func (l *Learner) fetchRaw(ctx context.Context, a *wire.SignedAnnouncement) ([]byte, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, l.config.Intake.FetchTimeout,
		fmt.Errorf("bundle %s did not arrive within %v", a.Bundle, l.config.Intake.FetchTimeout))
	defer cancel()
	raw, err := l.config.Fetcher.Fetch(ctx, a.Bundle, a.Signer, int(a.BundleBytes))
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause
		}
		return nil, err
	}
	return raw, a.Bundle.Verify(raw)
}

// examine decodes and checks a bundle without regard to what else was accepted.
func (l *Learner) examine(a *wire.SignedAnnouncement, raw []byte) (*bundle.Bundle, Verdict) {
	if len(raw) != int(a.BundleBytes) {
		return nil, Verdict{AnnouncementMismatch, fmt.Sprintf("%d bytes, announced were %d", len(raw), a.BundleBytes)}
	}
	b, err := bundle.Decode(raw, l.decode)
	if err != nil {
		return nil, Verdict{Malformed, err.Error()}
	}
	return b, l.rules.Check(a, b)
}

// arrived describes a bundle that passed its checks.
func (l *Learner) arrived(a *wire.SignedAnnouncement, raw []byte, b *bundle.Bundle) arrival {
	if b.Purpose != wire.PurposeTrain {
		return arrival{announcement: a, raw: raw, evaluation: b}
	}
	return arrival{announcement: a, raw: raw, teaches: l.teaches(b)}
}

// teaches says whether there is something to learn from a group, as plan will find it too. It says no where no step asks.
func (l *Learner) teaches(b *bundle.Bundle) bool {
	if !l.config.Batch.dynamic() {
		return false
	}
	a := l.config.Algorithm
	reason := a.useless(a.score(&l.rules, group{bundle: b}))
	if _, learns := a.Credit.(credit.Learning); learns && reason == ZeroVariance {
		return true // A critic is asked at the step, and hardly ever says the same of all calls.
	}
	return reason == ""
}

// refuse ends a job with a verdict against it.
func (l *Learner) refuse(a *wire.SignedAnnouncement, v Verdict) {
	l.mu.Lock()
	l.landed(a)
	l.state.Unclaim(a)
	l.reasons[v.Reason]++
	l.mu.Unlock()
	signal(l.work)
	l.config.Observer.Judged(a, v)
}

// failed queues a job again, or gives it up.
func (l *Learner) failed(ctx context.Context, j job, err error) {
	if ctx.Err() != nil {
		return
	}
	j.failures++
	if j.failures >= l.config.Intake.Attempts {
		l.refuse(j.announcement, Verdict{FetchFailed, err.Error()})
		return
	}
	j.notBefore = l.config.Now().Add(l.config.Intake.Retry << (j.failures - 1))
	l.mu.Lock()
	l.landed(j.announcement)
	dropped := l.push(j)
	l.mu.Unlock()
	signal(l.work)
	if dropped != nil {
		l.config.Observer.Judged(dropped.announcement, Verdict{Reason: QueueFull})
	}
}

// store puts arrivals into the store, all that came in the meantime in one synced batch.
func (l *Learner) store(ctx context.Context, arrivals <-chan arrival) error {
	for first := range arrivals {
		batch := []arrival{first}
		for more := true; more && len(batch) < l.config.Intake.Sync; {
			select {
			case a, ok := <-arrivals:
				if more = ok; ok {
					batch = append(batch, a)
				}
			default:
				more = false
			}
		}
		if err := l.accept(ctx, batch); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// accept makes a batch durable and then lets it count.
func (l *Learner) accept(ctx context.Context, batch []arrival) error {
	good := batch[:0]
	var accepted []Accepted
	taken := make(map[wire.CID]bool, len(batch))
	for _, a := range batch {
		if taken[a.announcement.Bundle] {
			l.refuse(a.announcement, Verdict{Duplicate, "another peer has delivered it"})
			continue
		}
		record, v := l.number(a)
		if !v.Accepted() {
			l.refuse(a.announcement, v)
			continue
		}
		taken[record.CID] = true
		good = append(good, a)
		accepted = append(accepted, Accepted{Record: record, Bundle: a.raw})
	}
	if len(good) == 0 {
		return nil
	}
	if err := l.config.Store.Accept(ctx, accepted); err != nil {
		return fmt.Errorf("storing accepted bundles: %w", err)
	}
	evaluations := l.settle(good, accepted)
	signal(l.work)
	signal(l.ready)
	for _, a := range good {
		l.config.Observer.Judged(a.announcement, Verdict{Reason: Admitted})
	}
	for _, e := range evaluations {
		l.config.Observer.Evaluated(e)
	}
	return nil
}

// number judges an arrival against what happened while it was fetched, and makes its record.
func (l *Learner) number(arrived arrival) (Record, Verdict) {
	a := arrived.announcement
	l.mu.Lock()
	defer l.mu.Unlock()
	v := l.state.Recheck(a)
	if v.Accepted() && arrived.evaluation != nil && !l.board.Lacks(arrived.evaluation) {
		// Of these there may be any number, and nothing makes them go before the next version.
		v = Verdict{Duplicate, "it has no result that the block lacks"}
	}
	if !v.Accepted() {
		return Record{}, v
	}
	l.order++
	return Record{
		CID:         a.Bundle,
		Purpose:     a.Purpose,
		Environment: a.Environment,
		Peer:        a.Signer,
		Counter:     a.Counter,
		Version:     a.PolicyVersion,
		Order:       l.order - 1,
	}, v
}

// settle lets durable bundles count, and returns the evaluations that gained results, by version and then purpose.
func (l *Learner) settle(batch []arrival, accepted []Accepted) []Evaluation {
	now := l.config.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	gained := make(map[tallyID]bool)
	for i, a := range batch {
		record := accepted[i].Record
		l.landed(a.announcement)
		l.state.Settle(record)
		l.reasons[Admitted]++
		if a.evaluation == nil {
			l.buffer.Add(record, a.teaches, now)
			continue
		}
		if l.board.Add(a.evaluation) > 0 {
			gained[tallyID{record.Version, record.Purpose}] = true
		}
		l.state.Consume(record)
		l.used = append(l.used, record.CID)
	}
	return l.board.evaluations(maps.Keys(gained))
}
