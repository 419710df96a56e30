package rollout

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
)

// Activity says what a worker is doing.
type Activity string

// The activities of a worker.
const (
	Stopped       Activity = "stopped"          // Run is not running
	AwaitPolicy   Activity = "awaiting policy"  // no policy is ready yet
	Evaluating    Activity = "evaluating"       // measuring a release on held-out tasks
	Training      Activity = "running groups"   // running training groups
	AwaitRelease  Activity = "awaiting release" // the pace of the newest release is done
	AwaitPastLast Activity = "idle"             // the newest release is final
)

// Tally counts what was announced. Rollouts that never became part of a bundle are in none of its fields.
type Tally struct {
	// Groups and Blocks are the bundles: training groups and evaluation blocks.
	Groups, Blocks uint64
	// Rollouts is the sum of Outcomes.
	Rollouts, Calls uint64
	// PromptTokens counts each call's whole prompt; CompletionTokens what the policy sampled.
	PromptTokens, CompletionTokens uint64
	Outcomes                       map[bundle.OutcomeKind]uint64
	// Rewards are over the trainable rollouts of each purpose.
	Rewards map[wire.Purpose]Reward
}

// Reward is the sum of some rollouts' rewards.
type Reward struct {
	Sum   float64
	Count uint64
}

// Mean is the average reward, 0 without rollouts.
func (r Reward) Mean() float64 {
	if r.Count == 0 {
		return 0
	}
	return r.Sum / float64(r.Count)
}

// Stats are a worker's figures since it was made.
type Stats struct {
	Activity Activity
	// Since is when Activity began.
	Since time.Time
	// Version is the newest version that the worker has taken; meaningful once something ran.
	Version uint64
	// Running counts the groups and blocks in flight.
	Running int
	// Repeats counts how often the pace was granted again because no release came in time.
	Repeats uint64
	Total   Tally
	// Versions has the newest keptVersions versions.
	Versions map[uint64]Tally
}

// keptVersions bounds the memory of a long run.
const keptVersions = 64

// stats guards a Stats.
type stats struct {
	mu sync.Mutex
	s  Stats // guarded by mu
}

func (t *stats) update(f func(*Stats)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f(&t.s)
}

// enter notes an activity and the version that it is about.
func (t *stats) enter(a Activity, version uint64) {
	t.update(func(s *Stats) {
		s.Version = version
		if s.Activity != a {
			s.Activity, s.Since = a, time.Now()
		}
	})
}

func (t *stats) add(b *bundle.Bundle) {
	t.update(func(s *Stats) {
		s.Total.add(b)
		if s.Versions == nil {
			s.Versions = make(map[uint64]Tally)
		}
		v := s.Versions[b.PolicyVersion]
		v.add(b)
		s.Versions[b.PolicyVersion] = v
		for len(s.Versions) > keptVersions {
			delete(s.Versions, slices.Min(slices.Collect(maps.Keys(s.Versions))))
		}
	})
}

// read returns a copy.
func (t *stats) read() Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.s
	c.Total = c.Total.clone()
	c.Versions = maps.Clone(c.Versions)
	for v, tally := range c.Versions {
		c.Versions[v] = tally.clone()
	}
	return c
}

func (t Tally) clone() Tally {
	t.Outcomes, t.Rewards = maps.Clone(t.Outcomes), maps.Clone(t.Rewards)
	return t
}

func (t *Tally) add(b *bundle.Bundle) {
	if t.Outcomes == nil {
		t.Outcomes, t.Rewards = make(map[bundle.OutcomeKind]uint64), make(map[wire.Purpose]Reward)
	}
	if b.Purpose == wire.PurposeTrain {
		t.Groups++
	} else {
		t.Blocks++
	}
	reward := t.Rewards[b.Purpose]
	for _, r := range b.Rollouts {
		t.Rollouts++
		t.Outcomes[r.Outcome]++
		if r.Outcome.Trainable() {
			reward.Sum += float64(r.Reward)
			reward.Count++
		}
		for _, c := range r.Calls {
			t.Calls++
			t.PromptTokens += uint64(len(c.Prompt))
			t.CompletionTokens += uint64(len(c.Completion))
		}
	}
	t.Rewards[b.Purpose] = reward
}
