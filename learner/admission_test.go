package learner

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
	"github.com/lightswarm/lightswarm/wire/draw"
)

// admit judges a bundle together with its announcement: the steps that a learner takes one after the other, with the fetch
// in between.
func admit(s *State, a *wire.SignedAnnouncement, b *bundle.Bundle) Verdict {
	if v := s.Screen(a); !v.Accepted() {
		return v
	}
	return s.rules.Check(a, b)
}

// admission returns rules and a state whose chain has versions 0 to head, every fourth of them evaluated. The digest of
// a version is its number's.
func admission(t testing.TB, n network, head uint64) *State {
	t.Helper()
	r, err := NewRules(n.charter, n.base, testContext, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.MaxPending = 100
	s := NewState(r, NewBoard(r))
	for v := range head + 1 {
		s.Release(Behaviour{v, digestOf(v), v%4 == 0})
	}
	return s
}

func digestOf(version uint64) policy.Digest {
	return policy.Digest{1, byte(version), byte(version >> 8)}
}

func TestAdmitRefuses(t *testing.T) {
	n := plainNetwork(t)
	peer := key(1).Peer()
	type offer struct {
		a *wire.SignedAnnouncement
		b *bundle.Bundle
	}
	// Each change is made to a valid group of version 10 of 12; after the change the announcement is made again from the
	// bundle unless after says otherwise.
	tests := []struct {
		name   string
		want   Reason
		change func(b *bundle.Bundle)
		after  func(o offer, s *State)
	}{
		{name: "a valid group", want: Admitted},
		{name: "another network", want: WrongNetwork, change: func(b *bundle.Bundle) { b.Network = wire.SumCID([]byte("x")) }},
		{name: "another environment", want: UnknownEnvironment, change: func(b *bundle.Bundle) { b.Environment = wire.SumCID([]byte("x")) }},
		{name: "a version to come", want: UnknownVersion, change: func(b *bundle.Bundle) { b.PolicyVersion = 13 }},
		{name: "another policy", want: PolicyMismatch, change: func(b *bundle.Bundle) { b.PolicyDigest[5] = 9 }},
		{name: "the same bundle", want: Duplicate, after: func(o offer, s *State) { s.Claim(o.a) }},
		{name: "the same draw", want: CounterReused, after: func(o offer, s *State) {
			other := *o.a
			other.Bundle = wire.SumCID([]byte("x"))
			s.Claim(&other)
		}},
		{name: "an environment that was not drawn", want: WrongDraw, change: func(b *bundle.Bundle) {
			for _, e := range n.charter.Environments {
				if e.Manifest != b.Environment {
					b.Environment = e.Manifest
					return
				}
			}
		}},
		{name: "too old", want: Stale, after: func(_ offer, s *State) {
			for v := s.Head() + 1; v <= 19; v++ {
				s.Release(Behaviour{v, digestOf(v), false})
			}
		}},
		{name: "too many of one peer", want: PeerPending, after: func(o offer, s *State) {
			for i := range 100 {
				other := *o.a
				other.Bundle, other.Counter = wire.SumCID(unique(i)), uint64(1000+i)
				s.Claim(&other)
			}
		}},
		{name: "a member too few", want: WrongGroup, change: func(b *bundle.Bundle) { b.Rollouts = b.Rollouts[1:] }},
		{name: "another number of bytes of completions", want: AnnouncementMismatch, after: func(o offer, _ *State) { o.a.CompletionTokens++ }},
		{name: "another bundle's purpose", want: AnnouncementMismatch, after: func(o offer, _ *State) { o.b.Purpose = wire.PurposeEvaluateGreedy }},
		{name: "another peer's bundle", want: AnnouncementMismatch, after: func(o offer, _ *State) { o.b.Peer = key(2).Peer() }},
		{name: "a member twice", want: WrongGroup, change: func(b *bundle.Bundle) { b.Rollouts[1].Member = 0 }},
		{name: "another task", want: WrongDraw, change: func(b *bundle.Bundle) { b.Rollouts[2].Task++ }},
		{name: "another split", want: WrongDraw, change: func(b *bundle.Bundle) { b.Split = wire.SplitValidation }},
		{name: "greedy", want: WrongSampling, change: func(b *bundle.Bundle) { b.Sampling = wire.Sampling{} }},
		{name: "other limits", want: WrongSampling, change: func(b *bundle.Bundle) { b.MaxCompletionTokens++ }},
		{name: "a call too many", want: TooManyCalls, change: func(b *bundle.Bundle) {
			c := &b.Rollouts[0].Calls
			*c = append(*c, (*c)[1], (*c)[1])
		}},
		{name: "nothing said", want: CompletionLength, change: func(b *bundle.Bundle) {
			c := &b.Rollouts[3].Calls[1]
			c.Completion, c.LogProbs = nil, nil
		}},
		{name: "too much said", want: CompletionLength, change: func(b *bundle.Bundle) {
			b.Rollouts[3].Calls[1] = testCall([]int32{1}, 5)
		}},
		{name: "more than the context", want: ContextLength, change: func(b *bundle.Bundle) {
			b.Rollouts[3].Calls[1] = testCall(make([]int32, testContext-3), 4)
		}},
		{name: "an unknown token", want: TokenRange, change: func(b *bundle.Bundle) {
			b.Rollouts[0].Calls[1].Completion[2] = int32(n.base.VocabSize())
		}},
		{name: "an unknown token in a prompt", want: TokenRange, change: func(b *bundle.Bundle) {
			b.Rollouts[0].Calls[1].Prompt[0] = int32(n.base.VocabSize())
		}},
		{name: "a token that only the model has", want: Admitted, change: func(b *bundle.Bundle) {
			padding := int32(n.base.Tokenizer.VocabSize())
			b.Rollouts[0].Calls[1].Completion[2], b.Rollouts[0].Calls[1].Prompt[0] = padding, padding
		}},
		{name: "more than certain", want: LogProbRange, change: func(b *bundle.Bundle) { b.Rollouts[0].Calls[0].LogProbs[0] = 0.25 }},
		{name: "impossible", want: LogProbRange, change: func(b *bundle.Bundle) {
			b.Rollouts[0].Calls[0].LogProbs[0] = float32(math.Inf(-1))
		}},
		{name: "less than any token that was drawn", want: LogProbRange, change: func(b *bundle.Bundle) { b.Rollouts[0].Calls[0].LogProbs[0] = -256 }},
		{name: "of an approximate engine too", want: LogProbRange, change: func(b *bundle.Bundle) {
			b.Engine = bundle.EngineApproximate
			b.Rollouts[0].Calls[0].LogProbs[0] = -1e30
		}},
		{name: "unlikely", want: Admitted, change: func(b *bundle.Bundle) { b.Rollouts[0].Calls[0].LogProbs[0] = -256 + 1./(1<<16) }},
		{name: "between the grid", want: LogProbRange, change: func(b *bundle.Bundle) { b.Rollouts[0].Calls[0].LogProbs[0] = -1 - 1./(1<<18) }},
		{name: "between the grid of an approximate engine", want: Admitted, change: func(b *bundle.Bundle) {
			b.Engine = bundle.EngineApproximate
			b.Rollouts[0].Calls[0].LogProbs[0] = -1 - 1./(1<<18)
		}},
		{name: "stopped without a stop", want: WrongFinish, change: func(b *bundle.Bundle) { b.Rollouts[1].Calls[0].Finish = uint8(policy.FinishStop) }},
		{name: "stopped", want: Admitted, change: func(b *bundle.Bundle) {
			c := &b.Rollouts[1].Calls[0]
			c.Finish, c.Completion[3] = uint8(policy.FinishStop), n.base.Generation.Stop[0]
		}},
		{name: "went on after a stop", want: WrongFinish, change: func(b *bundle.Bundle) {
			c := &b.Rollouts[1].Calls[0]
			c.Finish, c.Completion[2], c.Completion[3] = uint8(policy.FinishStop), n.base.Generation.Stop[0], n.base.Generation.Stop[0]
		}},
		{name: "cut before a limit", want: WrongFinish, change: func(b *bundle.Bundle) { b.Rollouts[1].Calls[1] = testCall([]int32{1}, 3) }},
		{name: "cut by the context", want: Admitted, change: func(b *bundle.Bundle) {
			b.Rollouts[1].Calls[1] = testCall(make([]int32, testContext-3), 3)
		}},
		{name: "an unknown finish", want: WrongFinish, change: func(b *bundle.Bundle) { b.Rollouts[1].Calls[1].Finish = 7 }},
		{name: "too large a reward", want: RewardRange, change: func(b *bundle.Bundle) { b.Rollouts[1].Reward = 1.5 }},
		{name: "too large a reward of a call", want: RewardRange, change: func(b *bundle.Bundle) { rewardCalls(b, 1e6, -1e6) }},
		{name: "too large a sum of rewards", want: RewardRange, change: func(b *bundle.Bundle) { rewardCalls(b, 0.75, 0.75) }},
		{name: "rewards of calls", want: Admitted, change: func(b *bundle.Bundle) { rewardCalls(b, 0.25, 0.75) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := admission(t, n, 12)
			s.rules.Manifests = map[wire.CID]wire.EnvironmentManifest{}
			for _, e := range n.charter.Environments {
				s.rules.Manifests[e.Manifest] = wire.EnvironmentManifest{RewardMax: 1}
			}
			b := n.group(10, digestOf(10), peer, 7)
			if tt.change != nil {
				tt.change(b)
			}
			a := announce([]byte("the bytes"), b)
			if tt.after != nil {
				tt.after(offer{&a, b}, s)
			}
			if got := admit(s, &a, b); got.Reason != tt.want {
				t.Errorf("verdict %q, want %q", got, tt.want)
			}
		})
	}
}

// rewardCalls moves the reward of a rollout to its two calls.
func rewardCalls(b *bundle.Bundle, first, second float32) {
	r := &b.Rollouts[1]
	r.Reward, r.Calls[0].Reward, r.Calls[1].Reward = 0, &first, &second
}

func TestAdmitEvaluation(t *testing.T) {
	n := plainNetwork(t)
	tests := []struct {
		name    string
		version uint64
		want    Reason
		change  func(b *bundle.Bundle)
	}{
		{name: "valid", version: 8, want: Admitted},
		{name: "older than any training group may be", version: 0, want: Admitted},
		{name: "not asked for", version: 9, want: NotRequested},
		{name: "a block that does not exist", version: 8, want: WrongDraw, change: func(b *bundle.Bundle) { b.Counter = 6 }},
		{name: "another environment's block", version: 8, want: WrongDraw, change: func(b *bundle.Bundle) { b.Environment = n.charter.Environments[0].Manifest }},
		{name: "a task left out", version: 8, want: WrongGroup, change: func(b *bundle.Bundle) { b.Rollouts = b.Rollouts[:3] }},
		{name: "another task", version: 8, want: WrongDraw, change: func(b *bundle.Bundle) { b.Rollouts[0].Task = 9 }},
		{name: "of the training split", version: 8, want: WrongDraw, change: func(b *bundle.Bundle) { b.Split = wire.SplitTrain }},
		{name: "sampled", version: 8, want: WrongSampling, change: func(b *bundle.Bundle) { b.Sampling = n.charter.Rollout.Sampling }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := admission(t, n, 12)
			b := n.evaluation(tt.version, digestOf(tt.version), wire.PurposeEvaluateGreedy, 4, 2)
			if tt.change != nil {
				tt.change(b)
			}
			a := announce([]byte("the bytes"), b)
			a.Signer = key(3).Peer()
			if got := admit(s, &a, b); got.Reason != tt.want {
				t.Errorf("verdict %q, want %q", got, tt.want)
			}
		})
	}
	t.Run("a block with results", func(t *testing.T) {
		s := admission(t, n, 12)
		b := n.evaluation(8, digestOf(8), wire.PurposeEvaluateGreedy, 4, 2)
		s.board.Add(b)
		a := announce([]byte("the bytes"), b)
		if got := admit(s, &a, b); got.Reason != Duplicate {
			t.Errorf("verdict %q, want %q", got, Duplicate)
		}
	})
	t.Run("a version that was evaluated long ago", func(t *testing.T) {
		s := admission(t, n, 40)
		for version, want := range map[uint64]Reason{0: Stale, 8: Stale, 12: Admitted, 40: Admitted} {
			b := n.evaluation(version, digestOf(version), wire.PurposeEvaluateGreedy, 4, 2)
			a := announce([]byte("the bytes"), b)
			if got := admit(s, &a, b); got.Reason != want {
				t.Errorf("version %d: verdict %q, want %q", version, got, want)
			}
		}
	})
}

func TestWelcomeBehaviours(t *testing.T) {
	n := plainNetwork(t)
	s := admission(t, n, 2)
	foreign := policy.Digest{7}
	s.Welcome(Behaviour{Version: 0, Digest: foreign})
	evaluation := n.evaluation(0, foreign, wire.PurposeEvaluateGreedy, 4, 2)
	a := announce([]byte("the bytes"), evaluation)
	if got := admit(s, &a, evaluation); got.Reason != PolicyMismatch {
		t.Errorf("an evaluation of it counts for the chain's version: verdict %q", got)
	}
	for version, want := range map[uint64]Reason{1: Admitted, 30: Admitted, 31: UnknownVersion, 2: PolicyMismatch} {
		if want == Admitted {
			s.Welcome(Behaviour{Version: version, Digest: foreign})
		}
		b := n.group(version, foreign, key(1).Peer(), version)
		a := announce([]byte("the bytes"), b)
		if got := admit(s, &a, b); got.Reason != want {
			t.Errorf("version %d: verdict %q, want %q", version, got, want)
		}
	}
}

// A peer that announces others' bundles under its own name before they do keeps none of them out.
func TestClaimsKeepNobodyOut(t *testing.T) {
	n := plainNetwork(t)
	s := admission(t, n, 12)
	author, thief := key(1).Peer(), key(2).Peer()
	counter := uint64(0) // one under which both draw the same environment
	for draw.Train(s.rules.Network, s.rules.Charter, 10, author, counter).Environment !=
		draw.Train(s.rules.Network, s.rules.Charter, 10, thief, counter).Environment {
		counter++
	}
	for name, b := range map[string]*bundle.Bundle{
		"a training group": n.group(10, digestOf(10), author, counter),
		"an evaluation":    n.evaluation(8, digestOf(8), wire.PurposeEvaluateGreedy, 4, 2),
	} {
		first, _ := encode(t, b, thief)
		if v := s.Screen(&first); !v.Accepted() {
			t.Fatalf("%s under another name is refused at once: %s", name, v)
		}
		s.Claim(&first)
		if v := s.Screen(&first); v.Reason != Duplicate {
			t.Errorf("%s, announced again: verdict %q", name, v)
		}
		second, _ := encode(t, b, author)
		if v := admit(s, &second, b); !v.Accepted() {
			t.Errorf("%s: its author's announcement is refused: %s", name, v)
		}
	}
}

func TestCounterGaps(t *testing.T) {
	n := plainNetwork(t)
	s := admission(t, n, 0)
	settle := func(counter uint64) {
		s.Settle(Record{CID: wire.SumCID(unique(int(counter))), Purpose: wire.PurposeTrain, Peer: key(1).Peer(), Counter: counter, Consumed: true})
	}
	for _, step := range []struct{ counter, missing uint64 }{{5, 0}, {6, 0}, {9, 2}, {7, 1}, {8, 0}, {20, 10}} {
		settle(step.counter)
		if got := s.peers[key(1).Peer()].missing; got != step.missing {
			t.Errorf("after counter %d: %d missing, want %d", step.counter, got, step.missing)
		}
	}
}

// Whatever the order of events, a bundle and a draw are let through once, pending counts are what they say, and nothing
// is remembered for ever.
func TestStateInvariants(t *testing.T) {
	n := plainNetwork(t)
	rapid.Check(t, func(rt *rapid.T) {
		s := admission(t, n, 0)
		head := uint64(0)
		var pending []*wire.SignedAnnouncement
		settled := make(map[wire.CID]Record)
		for range rapid.IntRange(1, 40).Draw(rt, "events") {
			switch rapid.SampledFrom([]string{"offer", "offer", "settle", "fail", "consume", "release"}).Draw(rt, "event") {
			case "offer":
				peer := key(byte(rapid.IntRange(1, 3).Draw(rt, "peer"))).Peer()
				version := head - min(head, uint64(rapid.IntRange(0, 10).Draw(rt, "lag")))
				b := n.group(version, digestOf(version), peer, uint64(rapid.IntRange(0, 4).Draw(rt, "counter")))
				a, _ := encode(t, b, peer)
				if v := s.Screen(&a); v.Accepted() {
					if _, ok := settled[a.Bundle]; ok {
						rt.Fatalf("bundle %s was let through twice", a.Bundle)
					}
					s.Claim(&a)
					pending = append(pending, &a)
				}
			case "settle", "fail":
				if len(pending) == 0 {
					continue
				}
				a := pending[0]
				pending = pending[1:]
				if rapid.Bool().Draw(rt, "good") {
					settled[a.Bundle] = Record{CID: a.Bundle, Purpose: a.Purpose, Peer: a.Signer, Counter: a.Counter, Version: a.PolicyVersion}
					s.Settle(settled[a.Bundle])
				} else {
					s.Unclaim(a)
				}
			case "consume":
				for _, r := range settled {
					s.Consume(r)
				}
			case "release":
				head++
				s.Release(Behaviour{head, digestOf(head), head%4 == 0})
			}
			counts := make(map[wire.PeerID]int)
			for id, c := range s.claims {
				if c.pending {
					counts[id.peer]++
				}
			}
			for peer, p := range s.peers {
				if p.pending != counts[peer] || p.pending < 0 {
					rt.Fatalf("peer has %d pending bundles, counted %d", counts[peer], p.pending)
				}
			}
			if len(s.draws) > len(s.claims) {
				rt.Fatalf("%d draws for %d claims", len(s.draws), len(s.claims))
			}
		}
		for _, r := range settled {
			s.Consume(r)
		}
		for _, a := range pending {
			s.Unclaim(a)
		}
		for range 60 {
			head++
			s.Release(Behaviour{head, digestOf(head), false})
		}
		if len(s.claims)+len(s.draws)+len(s.peers) > 0 || len(s.versions) > 9+evaluationWindow {
			rt.Fatalf("%d claims, %d draws, %d peers and %d versions stay", len(s.claims), len(s.draws), len(s.peers), len(s.versions))
		}
	})
}
