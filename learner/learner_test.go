package learner

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/virtualtime"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
	"github.com/lightswarm/lightswarm/wire/draw"
)

// TestMain uses the bundle codec once: its compressor makes channels at first use, which must not belong to the
// synctest bubble of whichever test comes first.
func TestMain(m *testing.M) {
	if err := warmCodec(); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

func warmCodec() error {
	raw, err := bundle.Encode(&bundle.Bundle{
		Network: wire.SumCID(nil), Environment: wire.SumCID(nil), PolicyDigest: [32]byte{1}, Purpose: wire.PurposeEvaluateGreedy,
		Split: wire.SplitValidation, MaxCompletionTokens: 1, Engine: bundle.EngineExact,
		Rollouts: []bundle.Rollout{{Outcome: bundle.OutcomeScored}},
	})
	if err != nil {
		return err
	}
	_, err = bundle.Decode(raw, bundle.Limits{})
	return err
}

// running starts a learner and returns it with a function that stops it and fails the test if Run failed otherwise.
func running(t *testing.T, c Config) (*Learner, func()) {
	t.Helper()
	l, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- l.Run(ctx) }()
	synctest.Wait()
	return l, func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("run: %v", err)
		}
	}
}

func TestGroupsExpire(t *testing.T) {
	n := plainNetwork(t)
	virtualtime.Test(t, func(t *testing.T) {
		s := newSwarm()
		c := n.config(s)
		lag := uint64(2)
		c.MaxLag = &lag
		c.Batch = BatchRule{Groups: 4, Dynamic: 1, PeerShare: 0.5, Patience: 10 * time.Second}
		s.publish = func(r wire.SignedRelease) {
			if r.Version == 1 {
				time.Sleep(time.Second) // all the others are accepted meanwhile
			}
		}
		l, stop := running(t, c)
		defer stop()
		offerGroups(t, n, s, l, 1, 0, 18)
		time.Sleep(time.Minute)
		status := l.Status()
		// Versions 1, 2 and 3 use twelve; then the lag is 3.
		if status.Head.Version != 3 || status.Reasons[StaleAtUse] != 6 || status.Waiting != 0 {
			t.Errorf("version %d, reasons %v, %d wait", status.Head.Version, status.Reasons, status.Waiting)
		}
		if offerGroups(t, n, s, l, 1, 18, 1) != 0 || s.counted(Stale) != 1 {
			t.Error("a stale announcement is taken")
		}
	})
}

// What a learner says that it does is true at each moment of a step.
func TestStatusSaysWhetherAStepIsUnderWay(t *testing.T) {
	n := plainNetwork(t)
	virtualtime.Test(t, func(t *testing.T) {
		s := newSwarm()
		c := n.config(s)
		var l *Learner
		says := func(training bool, version uint64) {
			if got := l.Status(); got.Training != training || got.Head.Version != version {
				t.Errorf("training is %t at version %d, want %t at %d", got.Training, got.Head.Version, training, version)
			}
		}
		c.Trainer = &fakeTrainer{weights: make([]float32, 4), norm: func(int) float64 {
			says(true, 0)
			return 1
		}}
		c.Stop.MaxVersion = 1
		c.FinalPatience = 0
		s.publish = func(r wire.SignedRelease) {
			says(false, r.Version)
			if r.Version == 0 {
				offerGroups(t, n, s, l, 1, 0, 4)
			}
		}
		var err error
		if l, err = Open(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if err := l.Run(t.Context()); err != nil || len(s.steps) != 1 {
			t.Fatalf("%d steps, %v", len(s.steps), err)
		}
	})
}

func TestBadGradientsLeaveTheWeights(t *testing.T) {
	n := plainNetwork(t)
	for name, norm := range map[string]float64{"not finite": math.NaN(), "absurd": 1e9} {
		t.Run(name, func(t *testing.T) {
			virtualtime.Test(t, func(t *testing.T) {
				s := newSwarm()
				c := n.config(s)
				// The second update of the second step is bad: the first must be undone with it.
				c.Trainer = &fakeTrainer{weights: make([]float32, 4), norm: func(step int) float64 {
					if step == 3 {
						return norm
					}
					return 1
				}}
				c.Stop.MaxVersion = 3
				c.FinalPatience = 0
				l, err := Open(t.Context(), c)
				if err != nil {
					t.Fatal(err)
				}
				s.publish = func(r wire.SignedRelease) {
					if r.Version == 0 {
						offerGroups(t, n, s, l, 1, 0, 12)
					}
				}
				if err := l.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				var changed []bool
				for i := 1; i < len(s.releases); i++ {
					changed = append(changed, s.releases[i].Policy.Digest != s.releases[i-1].Policy.Digest)
				}
				if fmt.Sprint(changed) != "[true false true]" {
					t.Errorf("the policy changed: %v", changed)
				}
				if s.steps[0].Skipped != "" || s.steps[1].Skipped == "" || s.steps[1].Updates != 0 || s.steps[2].Skipped != "" {
					t.Errorf("skipped: %q, %q, %q", s.steps[0].Skipped, s.steps[1].Skipped, s.steps[2].Skipped)
				}
				if got := l.Status().GroupsTrained; got != 8 {
					t.Errorf("trained on %d groups, want 8", got)
				}
			})
		})
	}
}

func TestTargetEndsTheChain(t *testing.T) {
	n := plainNetwork(t)
	virtualtime.Test(t, func(t *testing.T) {
		s := newSwarm()
		c := n.config(s)
		c.Stop = Stop{Target: 0.5, Hold: 2, Purpose: wire.PurposeEvaluateSampled}
		c.EvaluateEvery = 1
		c.FinalPatience = time.Minute
		c.Intake.Waiting = 4
		l, err := Open(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() { done <- l.Run(t.Context()) }()
		evaluate := func(version uint64, digest policy.Digest, solved int) {
			for _, purpose := range []wire.Purpose{wire.PurposeEvaluateSampled, wire.PurposeEvaluateGreedy} {
				for block := range draw.EvaluationBlocks(&n.charter.Charter) {
					a, raw := encode(t, n.evaluation(version, digest, purpose, block, solved), key(3).Peer())
					s.add(raw)
					l.Offer(a)
				}
			}
		}
		head := func() wire.SignedRelease {
			synctest.Wait()
			return l.Status().Head
		}
		for version := range uint64(3) {
			if head().Version != version || head().Final {
				t.Fatalf("version %d (final %v), want %d", head().Version, head().Final, version)
			}
			if version == 2 {
				offerGroups(t, n, s, l, 1, 50, 3) // they wait when the chain ends
			}
			evaluate(version, head().Policy.Digest, int(version)*2) // 0, 12 and 20 of 20 tasks
			if version < 2 {
				synctest.Wait()
				offerGroups(t, n, s, l, 1, int(version)*4, 4)
			}
		}
		if h := head(); h.Version != 3 || !h.Final || !h.Evaluate || h.Policy != s.releases[2].Policy {
			t.Fatalf("version %d (final %v) follows the target", h.Version, h.Final)
		}
		if offerGroups(t, n, s, l, 1, 100, 1) != 0 || s.counted(Ended) != 1 {
			t.Error("a group is taken although the chain is final")
		}
		began := time.Now()
		evaluate(3, head().Policy.Digest, 4)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if waited := time.Since(began); waited != 0 {
			t.Errorf("a complete evaluation was waited for another %v", waited)
		}
		checkChain(t, s.releases)
		if e := l.board.Evaluation(3, wire.PurposeEvaluateGreedy); !e.Complete() || e.Success() != 1 {
			t.Errorf("the last evaluation is %+v", e)
		}
		if len(s.results) == 0 || s.results[0].Version != 0 {
			t.Error("the observer saw no evaluation")
		}
	})
}

func TestOpenRefuses(t *testing.T) {
	n := plainNetwork(t)
	for name, change := range map[string]func(*Config){
		"a key that may not release": func(c *Config) { c.Key = key(1) },
		"another base policy": func(c *Config) {
			f := fakeTrainer{weights: []float32{1, 2, 3, 4}}
			c.Base, c.Trainer = testPolicy(t, []byte(`{"vocab_size":512}`), f.tensors()), &f
		},
		"a trainer of other weights": func(c *Config) { c.Trainer = &fakeTrainer{weights: []float32{1, 2, 3, 4}} },
		"no store":                   func(c *Config) { c.Store = nil },
		"less room than a batch":     func(c *Config) { c.Intake.Waiting = 3 },
		"no loss":                    func(c *Config) { c.Algorithm.Loss = nil },
		"a temperature": func(c *Config) {
			hot := newNetwork(t, n.base, func(c *wire.Charter) { c.Rollout.Sampling.Temperature = 0.7 })
			c.Charter = hot.charter
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := n.config(newSwarm())
			change(&c)
			if _, err := Open(t.Context(), c); err == nil {
				t.Error("opened")
			} else {
				t.Log(err)
			}
		})
	}
	t.Run("another network's store", func(t *testing.T) {
		virtualtime.Test(t, func(t *testing.T) {
			c := n.config(newSwarm())
			_, stop := running(t, c)
			stop()
			other := newNetwork(t, n.base, func(c *wire.Charter) { c.Nonce = []byte("other") })
			c2 := other.config(newSwarm())
			c2.Store = c.Store
			if _, err := Open(t.Context(), c2); err == nil {
				t.Error("opened")
			}
		})
	})
}
