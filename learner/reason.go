package learner

// Reason says what became of a bundle. Reasons are stable: peers, dashboards and stored counters name them.
type Reason string

// Admitted is the reason of a bundle that passed every check.
const Admitted Reason = "accepted"

// Why an announcement is refused before its bundle is fetched, in the order of the checks. WrongGroup, below, comes
// before PeerPending here.
const (
	// WrongNetwork: it is for another network.
	WrongNetwork Reason = "wrong_network"
	// UnknownEnvironment: its environment is not in the charter.
	UnknownEnvironment Reason = "unknown_environment"
	// UnknownVersion: its policy version is not released yet.
	UnknownVersion Reason = "unknown_version"
	// PolicyMismatch: its policy digest is not that version's.
	PolicyMismatch Reason = "policy_mismatch"
	// Duplicate: its peer has announced the bundle before, its evaluation block has all its results, or, once it is fetched,
	// all that it has. Announcements travel on several paths, so this is no fault.
	Duplicate Reason = "duplicate"
	// CounterReused: its peer has announced another bundle for the same draw.
	CounterReused Reason = "counter_reused"
	// NotRequested: it is an evaluation of a version whose release asked for none.
	NotRequested Reason = "evaluation_not_requested"
	// WrongDraw: the peer, version and counter do not draw this environment or task, or there is no such evaluation
	// block.
	WrongDraw Reason = "wrong_draw"
	// Ended: it is a training group of a chain that is final.
	Ended Reason = "ended"
	// Stale: its version is more than the permitted lag behind, or takes no more evaluation results.
	Stale Reason = "stale"
	// PeerPending: its peer has as many groups waiting as one peer may.
	PeerPending Reason = "peer_pending"
)

// What can happen between the first check and the second.
const (
	// QueueFull: more announcements arrived than are kept, and this was the oldest of the peer with the most.
	QueueFull Reason = "queue_full"
	// FetchFailed: nobody delivered the bundle in time.
	FetchFailed Reason = "fetch_failed"
)

// Why a fetched bundle is refused, in the order of the checks. WrongDraw, above, goes with WrongGroup here; a bundle of
// another length than announced is an AnnouncementMismatch before it is decoded.
const (
	// Malformed: it does not decode, or breaks a rule that holds for every bundle.
	Malformed Reason = "malformed"
	// AnnouncementMismatch: it is not what its announcement says.
	AnnouncementMismatch Reason = "announcement_mismatch"
	// WrongGroup: its rollouts are not the members that the rules ask for, each once.
	WrongGroup Reason = "wrong_group"
	// WrongSampling: it was sampled by other rules than the charter's.
	WrongSampling Reason = "wrong_sampling"
	// TooManyCalls: a rollout has more calls than the charter permits.
	TooManyCalls Reason = "too_many_calls"
	// CompletionLength: a completion is empty or longer than the charter permits.
	CompletionLength Reason = "completion_length"
	// ContextLength: a prompt and its completion do not fit the model's context.
	ContextLength Reason = "context_length"
	// TokenRange: a token id is not one of the model's.
	TokenRange Reason = "token_range"
	// LogProbRange: a log-prob is positive, too low to have been drawn, not a number, or not one that an exact engine gives.
	LogProbRange Reason = "log_prob_range"
	// WrongFinish: a completion does not end as its finish reason says.
	WrongFinish Reason = "wrong_finish"
	// WrongGrammar: a completion is not one that the call's grammar allows, the grammar is none, or following the
	// bundle's grammars takes more work than a learner does for one bundle.
	WrongGrammar Reason = "wrong_grammar"
	// RewardRange: a rollout's reward, a call's, or the sum of them is outside the environment's range.
	RewardRange Reason = "reward_range"
)

// Why an accepted group is not trained on.
const (
	// StaleAtUse: its lag had grown past the permitted one when its turn came.
	StaleAtUse Reason = "stale_at_use"
	// TooFewScored: fewer than two of its rollouts have an outcome with a reward.
	TooFewScored Reason = "too_few_scored"
	// ZeroVariance: all its returns are equal and credit assignment adds nothing, so that no advantage is left.
	ZeroVariance Reason = "zero_variance"
	// Untrained: no call of it was made by an agent that is trained here.
	Untrained Reason = "untrained"
)

// Dropped says whether it is why an accepted group was not trained on.
func (r Reason) Dropped() bool {
	switch r {
	case StaleAtUse, TooFewScored, ZeroVariance, Untrained:
		return true
	}
	return false
}

// Verdict is the answer to one announcement.
type Verdict struct {
	Reason Reason
	// Detail says more in words; it may be empty.
	Detail string
}

// Accepted says whether the bundle passed.
func (v Verdict) Accepted() bool { return v.Reason == Admitted }

// String is the reason and the detail.
func (v Verdict) String() string {
	if v.Detail == "" {
		return string(v.Reason)
	}
	return string(v.Reason) + ": " + v.Detail
}
