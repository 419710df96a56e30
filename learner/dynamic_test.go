package learner

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/lightswarm/lightswarm/learner/credit"
	"github.com/lightswarm/lightswarm/virtualtime"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
)

// Where one group in four teaches, a learner that may take more soon asks for so many that each step has a full batch without
// waiting for the node; one that may not learns from a quarter of a batch.
func TestStepsTakeGroupsUntilEnoughTeach(t *testing.T) {
	const steps, batch = 16, 4
	n := plainNetwork(t)
	for dynamic, learned := range map[float64]int{1: batch / 4, 8: batch} {
		t.Run(fmt.Sprint("dynamic ", dynamic), func(t *testing.T) {
			virtualtime.Test(t, func(t *testing.T) {
				s := newSwarm()
				c := n.config(s)
				c.Batch.Groups, c.Batch.Dynamic, c.Batch.PeerShare = batch, dynamic, 1
				c.Stop.MaxVersion, c.FinalPatience = steps, 0
				c.Intake.Fetches = 1 // so that the one peer's groups are accepted in their order
				var l *Learner
				counter := uint64(0)
				s.publish = func(r wire.SignedRelease) {
					groups := int(r.GroupsPerVersion)
					if r.Version == 0 {
						groups = batch
					}
					for range groups {
						g := n.group(r.Version, r.Policy.Digest, key(1).Peer(), counter)
						if counter%4 > 0 {
							for i := range g.Rollouts {
								g.Rollouts[i].Reward = 1
							}
						}
						counter++
						a, raw := encode(t, g, g.Peer)
						s.add(raw)
						if v := l.Offer(a); !v.Accepted() && !r.Final {
							t.Errorf("counter %d: %s", counter, v)
						}
					}
				}
				c.Active = func() int { return 1 }
				var err error
				if l, err = Open(t.Context(), c); err != nil {
					t.Fatal(err)
				}
				if err := l.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				if len(s.steps) != steps {
					t.Fatalf("%d steps, want %d", len(s.steps), steps)
				}
				for _, step := range s.steps[steps/2:] {
					t.Logf("version %d learned from %d of %d groups after %v, %d wait; yield %.2f, quota %d",
						step.Version, step.Learned, step.Groups, step.Waited, step.Waiting, step.Yield, step.Quota)
					if step.Learned != learned || step.Drops[ZeroVariance] != step.Groups-learned {
						t.Errorf("version %d learned from %d of %d groups, dropped %v, want %d", step.Version, step.Learned, step.Groups, step.Drops, learned)
					}
					if step.Waited >= time.Second {
						t.Errorf("version %d waited %v", step.Version, step.Waited)
					}
					if limit := 2 * 4 * learned; step.Waiting > limit {
						t.Errorf("%d groups wait at version %d, expected at most %d", step.Waiting, step.Version, limit)
					}
				}
			})
		})
	}
}

// A learner that is opened again knows what its groups teach and what the steps before it had.
func TestRestartKnowsWhatTeaches(t *testing.T) {
	n := plainNetwork(t)
	c := n.config(newSwarm())
	c.Batch.Groups, c.Batch.Dynamic = 2, 4
	open := func() *Learner {
		t.Helper()
		c.Trainer = &fakeTrainer{weights: make([]float32, 4)}
		l, err := Open(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	l := open()
	if err := l.begin(t.Context()); err != nil {
		t.Fatal(err)
	}
	accept := func(counter uint64, rewards ...float32) {
		t.Helper()
		b := groupOf(n, counter, 0, rewards...).bundle
		a, raw := encode(t, b, b.Peer)
		if v := l.Offer(a); !v.Accepted() {
			t.Fatal(v)
		}
		l.next()
		if err := l.accept(t.Context(), []arrival{l.arrived(&a, raw, b)}); err != nil {
			t.Fatal(err)
		}
	}
	accept(0, 1, 1, 1, 1)
	accept(1, 1, 0, 1, 0)
	accept(2, 1, 0, 1, 0)
	if err := l.stepOldest(t.Context(), false); err != nil || l.head.Version != 1 {
		t.Fatalf("version %d, %v", l.head.Version, err)
	}
	accept(3, 0, 0, 0, 0)
	accept(4, 1, 0, 0, 0)
	if again := open(); again.yield != l.yield || again.yield.Part() != 2./3 || again.Status().Teaching != 1 || again.Status().Waiting != 2 {
		t.Errorf("%+v, %+v before; %d of %d teach", again.yield, l.yield, again.Status().Teaching, again.Status().Waiting)
	}
}

// What a group is said to teach when it comes is what the step finds, but that a critic may find something in any.
func TestTeachesWhatThePlanLearns(t *testing.T) {
	n := plainNetwork(t)
	rules := planRules(t, n)
	rapid.Check(t, func(t *rapid.T) {
		a := drawAlgorithm(t, credit.Kinds.Names())
		g := drawRewarded(t, n, 1)
		if rapid.Bool().Draw(t, "flat") {
			g = groupOf(n, 1, 0, 1, 1, 1, 1)
		}
		for i := range rapid.IntRange(0, 4).Draw(t, "failed") {
			g.bundle.Rollouts[i].Outcome = bundle.OutcomeEnvError
		}
		l := &Learner{rules: *rules, config: Config{Algorithm: a, Batch: BatchRule{Groups: 1, Dynamic: 2}}}
		teaches, p := l.teaches(g.bundle), a.plan(rules, []group{g})
		_, critic := a.Credit.(credit.Learning)
		if want := p.learned == 1 || critic && p.drops[ZeroVariance] == 1; teaches != want {
			t.Fatalf("it teaches: %v; the step learned from %d and dropped %v", teaches, p.learned, p.drops)
		}
		l.config.Batch.Dynamic = 1
		if l.teaches(g.bundle) {
			t.Fatal("no step asks, and there is an answer")
		}
	})
}
