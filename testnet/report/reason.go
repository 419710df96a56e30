package report

// meanings say in words what the reasons are for which nothing is learned from rollouts. Learners define them (docs/protocol.md,
// Admission).
var meanings = map[string]string{
	"wrong_network":            "the bundle is for another network",
	"unknown_environment":      "its environment is not the network's",
	"unknown_version":          "its policy version is not released yet",
	"policy_mismatch":          "its policy is not that of its version",
	"duplicate":                "the learner had it already",
	"counter_reused":           "its peer announced another bundle for the same draw",
	"evaluation_not_requested": "it measures a version that is not to be measured",
	"wrong_draw":               "its tasks are not those that its peer had to draw",
	"ended":                    "it came after training was over",
	"stale":                    "its policy version was too old when it came",
	"peer_pending":             "too many bundles of its peer were waiting",
	"queue_full":               "too many bundles were waiting",
	"fetch_failed":             "nobody delivered it in time",
	"malformed":                "it cannot be read, or breaks the rules for every bundle",
	"announcement_mismatch":    "it is not what was announced",
	"wrong_group":              "it does not have the rollouts that it must have",
	"wrong_sampling":           "it was sampled by other rules than the network's",
	"too_many_calls":           "a rollout has more calls than the network allows",
	"completion_length":        "a completion is empty, or longer than the network allows",
	"context_length":           "a prompt and its completion are longer than the model's context",
	"token_range":              "a token is not one of the model's",
	"log_prob_range":           "a log-prob is one that the engine cannot have drawn",
	"wrong_finish":             "a completion does not end as it says",
	"wrong_grammar":            "a completion does not have the form that it says",
	"reward_range":             "a reward is outside the environment's range",
	"stale_at_use":             "the group had become too old when its turn came",
	"too_few_scored":           "fewer than two of the group's rollouts had a reward to compare",
	"zero_variance":            "the group's rollouts were all rewarded alike, so that none was better",
	"untrained":                "the group has no call by an agent that is trained",
}

// outcomes say in words how rollouts end that have no reward.
var outcomes = map[string]string{
	"agent_error": "the agent failed",
	"env_error":   "the environment failed",
	"timeout":     "it took longer than a rollout may",
}
