package learner

import (
	"time"

	"github.com/lightswarm/lightswarm/wire"
)

// Observer is told what a learner does. Its methods return soon and call nothing of the learner; they may run at the
// same time.
type Observer interface {
	// Stepped is called after each training step, once its release is published.
	Stepped(Step)
	// Evaluated is called when an evaluation gained results.
	Evaluated(Evaluation)
	// Judged is called for each announcement whose fate is decided: accepted, or refused with a reason.
	Judged(a *wire.SignedAnnouncement, v Verdict)
	// Released is called after each publication, a repeated one after a restart included.
	Released(r wire.SignedRelease)
}

// Step describes one training step. Means are over what is named; every number has exactly one definition. What the rows,
// tokens and updates show is 0 if nothing was trained on, and infinite or NaN where the weights were: Figure tells them apart.
type Step struct {
	// Version is the version that the step made.
	Version uint64
	Final   bool
	// Waited is the time from the release before to the moment when the step had its groups; Trained the time from there
	// to the durable checkpoint.
	Waited, Trained time.Duration

	// Groups is how many groups were used up, of which Learned had advantages to learn from. Peers is how many peers
	// they came from.
	Groups, Learned, Peers int
	// Most is the peer that most of Groups came from, of several the one with the smallest id, and MostGroups how many.
	Most       wire.PeerID
	MostGroups int
	// Rollouts is how many rollouts of these groups have a reward, and RewardMean the mean of those.
	Rollouts   int
	RewardMean float64
	// Solved is the share of Rollouts whose reward is the largest that the environment gives.
	Solved float64
	// Environments describes the groups by environment, in the charter's order; those without groups are left out.
	Environments []EnvironmentPart
	// SampledLengths distributes all completions of Groups by length, TrainedLengths those that were trained on.
	SampledLengths, TrainedLengths Lengths
	// AdvantageStd is the standard deviation of the advantages of the completions that were trained on.
	AdvantageStd float64
	// CriticExplained is the share of the variance of the calls' returns that the learned critic explained before it
	// learned from the step: 1 - sum (G-V)^2 / sum (G-mean)^2. NaN without such a critic, or if the returns do not differ.
	CriticExplained float64
	// Lags counts Groups by lag.
	Lags map[uint64]int
	// Drops counts groups that were used up without learning from them, by reason. Those of StaleAtUse came before their
	// turn and are not among Groups.
	Drops map[Reason]int

	// Rows is how many sequences were run, Tokens how many tokens they have, TrainedTokens how many of those were
	// sampled by the policy and trained on.
	Rows, Tokens, TrainedTokens int
	// CutTokens is how many tokens would have been trained on, but that level Concatenated had no room for them in the
	// model's context. TrainedLengths and AdvantageStd count their completions all the same.
	CutTokens int
	// Loss is the sum of weighted token losses, averaged over minibatches.
	Loss float64
	// Clipped is the share of trained tokens whose gradient a bound changed.
	Clipped float64
	// RatioMean and RatioMax are over the importance ratios of the trained tokens.
	RatioMean, RatioMax float64
	// EffectiveSamples is (Σw)²/(n Σw²) over the ratios w of the n trained tokens (Kish 1965): the share of tokens that
	// would teach as much if all counted alike. It is 1 on-policy, and 0 when nothing was trained on.
	EffectiveSamples float64
	// OnPolicyError is the largest |ratio - 1| among tokens of lag 0 in the first minibatch, where the weights are those
	// that sampled them: exactly 0 with an exact engine. OnPolicyTokens is how many such tokens there were.
	OnPolicyError  float64
	OnPolicyTokens int
	// KL estimates the divergence of the trained policy from the behaviour policy, in nats a token: the mean over
	// trained tokens of the recorded log-prob minus the new one.
	KL float64
	// Entropy is the mean entropy of the trained policy where a token was sampled, in nats.
	Entropy float64
	// GradientNorm is the largest norm of a minibatch's gradient before clipping, of those that are finite; NaN if none is.
	GradientNorm float64
	// LearningRate is what the updates used.
	LearningRate float64
	// Updates is how many optimiser updates the step kept.
	Updates int
	// Skipped says why the weights did not change; "" when they did.
	Skipped string

	// Waiting is how many groups were left for the next step, Quota what the release asks of each node, and
	// Active how many nodes it counted.
	Waiting, Active int
	Quota           uint32
	// Yield is the part of the groups of the latest steps, of older ones less, that taught something. Where a step may take
	// more than its batch, Quota follows from it.
	Yield float64
	// GroupsTrained is how many groups the chain has learned from so far.
	GroupsTrained uint64
}

// Nobody is an Observer that does nothing.
type Nobody struct{}

var _ Observer = Nobody{}

// Stepped implements Observer.
func (Nobody) Stepped(Step) {}

// Evaluated implements Observer.
func (Nobody) Evaluated(Evaluation) {}

// Judged implements Observer.
func (Nobody) Judged(*wire.SignedAnnouncement, Verdict) {}

// Released implements Observer.
func (Nobody) Released(wire.SignedRelease) {}
