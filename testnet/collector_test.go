package testnet

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/lightswarm/lightswarm/node/api"
	"github.com/lightswarm/lightswarm/testnet/report"
)

// script feeds a collector the events of one learner, a second apart.
type script struct {
	*Collector
	at   time.Time
	next uint64
}

func newScript(target float64) *script {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return &script{Collector: NewCollector(at, 8, target), at: at}
}

func (s *script) say(e api.Event) {
	s.at = s.at.Add(time.Second)
	e.Time, e.ID = s.at, s.next
	s.next++
	s.Add("learner", e)
}

func (s *script) verdict(peer, purpose string, version uint64, reason string) {
	s.say(api.Event{Verdict: &api.VerdictEvent{
		CID: "cid", Peer: peer, Purpose: purpose, Version: version, Rollouts: 8, CompletionTokens: 100,
		Accepted: reason == "accepted", Reason: reason,
	}})
}

func (s *script) measure(version uint64, success float64) {
	for _, purpose := range []string{"evaluate-sampled", "evaluate-greedy"} {
		s.say(api.Event{Evaluation: &api.Evaluation{Version: version, Purpose: purpose, Tasks: 256, Expected: 256, Complete: true, Success: success}})
	}
}

func (s *script) release(version uint64, final bool) {
	s.say(api.Event{Release: &api.Release{Version: version, ID: "release", Final: final}})
}

func TestProblemsAreToldForAMoment(t *testing.T) {
	s := newScript(0)
	if p := s.Progress(s.at, 1).Problem; p != "" {
		t.Errorf("a problem out of nothing: %q", p)
	}
	s.say(api.Event{Problem: &api.ProblemEvent{Message: "rollouts fail"}})
	if p := s.Progress(s.at.Add(time.Second), 1).Problem; p != "rollouts fail" {
		t.Errorf("the problem is %q", p)
	}
	if p := s.Progress(s.at.Add(problemWindow), 1).Problem; p != "" {
		t.Errorf("an old problem is told: %q", p)
	}
}

// An alert stands until it is said to be over; the report tells of both.
func TestAlertsStandUntilTheyAreOver(t *testing.T) {
	s := newScript(0)
	say := func(version uint64, kind string, over bool) {
		s.say(api.Event{Alert: &api.AlertEvent{Alert: api.Alert{Kind: kind, Since: 3, Message: "m", Advice: "a"}, Over: over, Version: version}})
	}
	say(3, "lag_at_bound", false)
	say(3, "tokens_masked", false)
	say(9, "lag_at_bound", true)
	say(12, "lag_at_bound", false)
	if got := s.Progress(s.at, 1).Alerts; len(got) != 2 || got[0].Kind != "tokens_masked" || got[1].Kind != "lag_at_bound" {
		t.Errorf("%v stands", got)
	}
	over := uint64(9)
	want := []report.Alert{
		{Kind: "lag_at_bound", Since: 3, Over: &over, Message: "m", Advice: "a"}, {Kind: "tokens_masked", Since: 3, Message: "m", Advice: "a"},
		{Kind: "lag_at_bound", Since: 3, Message: "m", Advice: "a"},
	}
	var r report.Report
	s.Fill(&r, s.at)
	if diff := cmp.Diff(want, r.Alerts); diff != "" {
		t.Error(diff)
	}
}

func TestCollectorCountsRolloutsByFate(t *testing.T) {
	s := newScript(0.95)
	s.verdict("a", "train", 0, "accepted")
	s.verdict("b", "train", 0, "accepted")
	s.verdict("b", "train", 0, "stale")
	s.verdict("a", "evaluate-sampled", 0, "accepted")
	s.verdict("b", "evaluate-sampled", 0, "duplicate")
	reward := 0.4
	s.say(api.Event{Step: &api.StepEvent{
		Version: 1, Groups: 2, Learned: 1, Active: 3, Quota: 5, Rollouts: 15, RewardMean: &reward, Lags: map[uint64]int{0: 1, 2: 1},
		Drops: map[string]int{"zero_variance": 1, "stale_at_use": 2},
	}})
	s.say(api.Event{Step: &api.StepEvent{Version: 2}}) // ends the chain, with nothing to learn from
	r := report.Report{Peers: []report.Peer{{ID: "b", Role: "rollout"}, {ID: "a", Role: "rollout"}, {ID: "l", Role: "learner"}}}
	s.Fill(&r, s.at)
	want := report.Report{
		Started: s.started, Seconds: 7, Target: 0.95, Steps: 2,
		Peers:            []report.Peer{{ID: "l", Role: "learner"}, {ID: "a", Role: "rollout", Rollouts: 8}, {ID: "b", Role: "rollout", Rollouts: 8}},
		RolloutsAccepted: 16, RolloutsRefused: map[string]uint64{"stale": 8},
		RolloutsDropped: map[string]uint64{"zero_variance": 8, "stale_at_use": 16}, RolloutsTrained: 15,
		TrainingSteps: []report.TrainingStep{{
			Version: 1, Seconds: 6, Groups: 2, ZeroVariance: 1, Learned: 1, Asked: 15, Rollouts: 15, Reward: &reward, Lag: []int{1, 0, 1}, AcceptedRollouts: 16,
		}, {
			Version: 2, Seconds: 7, AcceptedRollouts: 16,
		}},
	}
	if diff := cmp.Diff(want, r, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
	if got := s.Bundles(0); len(got) != 1 {
		t.Errorf("%d evaluation bundles are kept, want the accepted one", len(got))
	}
}

func TestCollectorIsDoneWhenTheLastVersionIsMeasured(t *testing.T) {
	s := newScript(0.95)
	s.release(0, false)
	s.measure(0, 0.3)
	if s.Done() || s.Reached(1) {
		t.Error("done with version 0")
	}
	s.measure(5, 0.96)
	if !s.Reached(1) {
		t.Error("the newest measure is above the target and it is not reached")
	}
	if s.Reached(2) {
		t.Error("one measure counts as two")
	}
	s.release(6, true)
	if s.Done() {
		t.Error("done before the last version is measured")
	}
	s.measure(6, 0.97)
	if !s.Done() || !s.Reached(2) {
		t.Error("not done after the last version was measured")
	}
	r := report.Report{}
	s.Fill(&r, s.at)
	if r.SecondsToTarget == nil || *r.SecondsToTarget != 4 {
		t.Errorf("the target was reached at %v, want second 4", r.SecondsToTarget)
	}
	if r.HeldOut.Start.Success != 77.0/256 || r.HeldOut.End.Success != 248.0/256 || r.Greedy.End.Tasks != 256 {
		t.Errorf("held-out %+v, greedy %+v", r.HeldOut, r.Greedy)
	}
	if e := r.HeldOut.End; e.Low >= e.Success || e.High <= e.Success {
		t.Errorf("%v is not inside its interval [%v, %v]", e.Success, e.Low, e.High)
	}
}

// A learner that gave the last measure up ends the run, which has not reached what was not measured.
func TestCollectorIsDoneWhenTheLearnerIs(t *testing.T) {
	s := newScript(0.95)
	s.measure(0, 0.3)
	s.release(1, true)
	s.say(api.Event{Phase: &api.PhaseEvent{Phase: "waiting"}})
	if s.Done() {
		t.Error("done while the learner waits")
	}
	s.say(api.Event{Phase: &api.PhaseEvent{Phase: "finished", Finished: true}})
	if !s.Done() || s.Reached(1) {
		t.Errorf("done %v, reached %v, want done alone", s.Done(), s.Reached(1))
	}
}

func TestCollectorWithoutATarget(t *testing.T) {
	s := newScript(0)
	if !s.Reached(1) {
		t.Error("there is no target to miss")
	}
	r := report.Report{}
	s.Fill(&r, s.at)
	if r.SecondsToTarget != nil {
		t.Error("a target that nobody set was reached")
	}
}

func TestCollectorFallsBackFromTheTarget(t *testing.T) {
	s := newScript(0.95)
	s.measure(5, 0.97)
	s.measure(10, 0.9)
	if s.Reached(1) {
		t.Error("reached, though the newest measure is below the target")
	}
}

func TestCollectorCountsMissedEvents(t *testing.T) {
	s := newScript(0)
	s.next = 7 // a subscription may begin at any event
	s.release(0, false)
	s.next += 3
	s.release(1, false)
	s.next = 0 // the node restarted
	s.release(2, false)
	r := report.Report{}
	s.Fill(&r, s.at)
	if r.EventsMissed != 3 {
		t.Errorf("%d events missed, want 3", r.EventsMissed)
	}
}

func TestProgressRatesForgetOldWork(t *testing.T) {
	s := newScript(0)
	for range 10 {
		s.verdict("a", "train", 0, "accepted")
	}
	p := s.Progress(s.at, 3)
	if p.Reward != nil {
		t.Errorf("a reward of %v before the first step", *p.Reward)
	}
	if p.Accepted != 80 || p.Peers != 3 {
		t.Errorf("accepted %d of %d peers", p.Accepted, p.Peers)
	}
	if p.RolloutsPerSecond < 8 || p.RolloutsPerSecond > 10 {
		t.Errorf("%v rollouts a second, want about 8", p.RolloutsPerSecond)
	}
	if p := s.Progress(s.at.Add(time.Minute), 3); p.RolloutsPerSecond != 0 || p.TokensPerSecond != 0 {
		t.Errorf("%v rollouts a second after a minute without work", p.RolloutsPerSecond)
	}
}

// A collector that is shown for ever does not grow, and still counts.
func TestCollectorKeeps(t *testing.T) {
	s := newScript(0.95)
	s.Keep(3)
	for version := range uint64(10) {
		s.say(api.Event{Step: &api.StepEvent{Version: version + 1}})
		s.verdict("a", "evaluate-sampled", version, "accepted")
		s.measure(version, 0.5)
	}
	s.measure(0, 0.5) // again, and late
	var versions []uint64
	for _, e := range s.Evaluations() {
		versions = append(versions, e.Version)
	}
	if diff := cmp.Diff([]uint64{7, 8, 9}, versions); diff != "" {
		t.Errorf("kept evaluations (-want +got)\n%s", diff)
	}
	if len(s.steps) != 3 || s.steps[2].Version != 10 || len(s.bundles) != 3 || s.Progress(s.at, 1).Step != 10 {
		t.Errorf("%d steps, bundles of %d versions, step %d", len(s.steps), len(s.bundles), s.Progress(s.at, 1).Step)
	}
}

// Whatever comes in which order, counts add up and nothing panics.
func TestCollectorAddsUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newScript(0.5)
		accepted, refused := uint64(0), uint64(0)
		for range rapid.IntRange(0, 60).Draw(t, "events") {
			version := rapid.Uint64Range(0, 9).Draw(t, "version")
			switch rapid.IntRange(0, 3).Draw(t, "kind") {
			case 0:
				reason := rapid.SampledFrom([]string{"accepted", "stale", "duplicate"}).Draw(t, "reason")
				s.verdict("p", "train", version, reason)
				if reason == "accepted" {
					accepted += 8
				} else {
					refused += 8
				}
			case 1:
				s.measure(version, rapid.Float64Range(0, 1).Draw(t, "success"))
			case 2:
				s.release(version, rapid.Bool().Draw(t, "final"))
			case 3:
				s.say(api.Event{Step: &api.StepEvent{Version: version, Lags: map[uint64]int{rapid.Uint64().Draw(t, "lag") % 5: 1}}})
			}
		}
		r := report.Report{}
		s.Fill(&r, s.at)
		sum := uint64(0)
		for _, n := range r.RolloutsRefused {
			sum += n
		}
		if r.RolloutsAccepted != accepted || sum != refused || r.EventsMissed != 0 {
			t.Fatalf("accepted %d of %d, refused %d of %d, missed %d", r.RolloutsAccepted, accepted, sum, refused, r.EventsMissed)
		}
		for i, e := range r.Evaluations {
			if i > 0 && e.Version <= r.Evaluations[i-1].Version {
				t.Fatal("evaluations are not in order")
			}
		}
	})
}
