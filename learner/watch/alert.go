package watch

// Kind names what an alert is about. Kinds are stable: dashboards and files name them.
type Kind string

// The kinds of alerts.
const (
	// EntropyCollapse: the policy hardly varies what it samples any more, and does not solve most tasks.
	EntropyCollapse Kind = "entropy_collapse"
	// RewardStuck: the training reward has not risen for many steps, and most tasks are not solved.
	RewardStuck Kind = "reward_stuck"
	// TokensMasked: the loss bounds a large part of the trained tokens.
	TokensMasked Kind = "tokens_masked"
	// GradientBlowUp: gradients are many times larger than before, or steps are undone because of them.
	GradientBlowUp Kind = "gradient_blow_up"
	// LagAtBound: most groups are as old as the network permits, or older.
	LagAtBound Kind = "lag_at_bound"
	// PeerDominates: most groups come from one of several peers.
	PeerDominates Kind = "peer_dominates"
	// HeldOutFalls: held-out success has fallen while the training reward rose.
	HeldOutFalls Kind = "held_out_falls"
)

// Kinds lists all kinds.
var Kinds = []Kind{EntropyCollapse, RewardStuck, TokensMasked, GradientBlowUp, LagAtBound, PeerDominates, HeldOutFalls}

// Alert says that something goes wrong.
type Alert struct {
	Kind Kind
	// Since is the version of the step or of the evaluation with which the alert was raised.
	Since uint64
	// Message says what was seen then, with figures; Advice what to do about it.
	Message, Advice string
}

// String is the message and the advice, as one text.
func (a Alert) String() string { return a.Message + ": " + a.Advice }

// Change is an alert that was raised, or that is over.
type Change struct {
	Alert
	Over bool
	// Version is the version with which it changed.
	Version uint64
}

// advice says what to do about each kind of alert.
var advice = map[Kind]string{
	EntropyCollapse: "the policy no longer tries other answers, so that nothing better is found; lower learner.learning_rate, give tasks " +
		"that it solves now and then, or rewards for partial success, and start again from an earlier policy",
	RewardStuck: "look at what the rollouts do (lightswarm bundle show); if most groups are dropped for zero_variance, the tasks are too hard or too " +
		"easy for the policy; otherwise more groups a step (learner.groups) or another learner.learning_rate may help, or it has learned what it can",
	TokensMasked: "the policy has moved far from the one that sampled; lower learner.learning_rate, or train on younger groups: fewer at " +
		"a time on the nodes (rollout.in_flight)",
	GradientBlowUp: "lower learner.learning_rate, and look for rewards far outside the usual ones; if it does not end, start again from an " +
		"earlier policy",
	LagAtBound: "the nodes fall behind the learner, and what they make is soon too old; let a step take more groups (learner.groups), let the " +
		"nodes run fewer at a time (rollout.in_flight), or found the network with a larger bound on lag",
	PeerDominates: "the policy learns what one peer's rollouts show; see with lightswarm status on the others whether they are slow or " +
		"refused, or let a step wait longer for them (learner.patience)",
	HeldOutFalls: "the policy learns what pays in training and does not carry over; look for a reward that can be had without solving the task " +
		"(lightswarm bundle show), train on more tasks, or keep the policy of the best evaluation",
}
