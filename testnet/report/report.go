package report

import (
	"encoding/json"
	"time"
)

// Schema is the version of report.json. A field is only ever added; a change of meaning raises Schema.
const Schema = 1

// Report is the content of report.json.
type Report struct {
	Schema int `json:"schema"`
	// Version is the program's version, Command the command line that ran.
	Version string    `json:"version"`
	Command string    `json:"command"`
	Seed    uint64    `json:"seed"`
	Started time.Time `json:"started"`
	// Seconds is the wall time from the start of the first node to the end of the run.
	Seconds float64 `json:"seconds"`

	Network     string `json:"network"`
	Environment string `json:"environment"`
	// Peers are the nodes that took part.
	Peers []Peer `json:"peers"`

	HeldOut Change `json:"held_out"`
	Greedy  Change `json:"greedy"`
	// Best is the evaluation with the highest sampled success, of equals the newest; nil without an evaluation. The newest
	// version may be worse.
	Best *Evaluation `json:"best,omitempty"`

	// End says why the run ended.
	End End `json:"end"`
	// Steps counts training steps; ReleaseHead is the newest version, ReleaseCID its signed release.
	Steps       int    `json:"steps"`
	ReleaseHead uint64 `json:"release_head"`
	ReleaseCID  string `json:"release_cid"`
	// Target is the held-out success that the run was asked to reach, 0 for none. Kept says how it stayed there, and
	// SecondsToTarget since when; both are absent if the newest evaluation is below it.
	Target          float64  `json:"target"`
	SecondsToTarget *float64 `json:"seconds_to_target,omitempty"`
	Kept            *Kept    `json:"kept,omitempty"`

	// Agent is the command of the program that played the rollouts, empty for the built-in agent. AgentProcesses counts its
	// processes on the nodes that could be asked at the end: one a rollout, those that came too late or were refused included.
	Agent          string `json:"agent"`
	AgentProcesses uint64 `json:"agent_processes"`

	// RolloutsAccepted counts the rollouts of training bundles that the learner admitted.
	RolloutsAccepted uint64 `json:"rollouts_accepted"`
	// RolloutsRefused counts the rollouts of training bundles that it refused, by reason.
	RolloutsRefused map[string]uint64 `json:"rollouts_refused"`
	// RolloutsDropped counts admitted rollouts whose group was used up without being learned from, by reason.
	RolloutsDropped map[string]uint64 `json:"rollouts_dropped"`
	// RolloutsFailed counts the rollouts that ended without a reward, by outcome: agent_error, env_error or timeout. It is of
	// all that the nodes announced, training groups and evaluation blocks, as far as a node could be asked at the end.
	RolloutsFailed map[string]uint64 `json:"rollouts_failed"`
	// RolloutsTrained counts the rollouts with a reward that training steps consumed, those of RolloutsDropped that have
	// one included.
	RolloutsTrained uint64 `json:"rollouts_trained"`
	// EventsMissed counts events of nodes that were lost on the way to the report. When it is not 0, the counts above are
	// too low.
	EventsMissed uint64 `json:"events_missed"`

	// Alerts are what the learner said goes wrong in training, in the order in which they were raised.
	Alerts []Alert `json:"alerts"`

	Evaluations   []Evaluation   `json:"evaluations"`
	TrainingSteps []TrainingStep `json:"training_steps"`
	Examples      []Example      `json:"examples"`
}

// Change is a measure at the first and at the newest version whose sampled measure is complete, and which versions these
// are: nil where the measure is not complete.
type Change struct {
	Start        Rate    `json:"start"`
	StartVersion *uint64 `json:"start_version,omitempty"`
	End          Rate    `json:"end"`
	EndVersion   *uint64 `json:"end_version,omitempty"`
}

// Rate is the success rate over Tasks held-out tasks, with the 95% Wilson interval [Low, High]. The zero Rate was not
// measured, and null in JSON.
type Rate struct {
	Success float64 `json:"success"`
	Tasks   int     `json:"tasks"`
	Low     float64 `json:"low"`
	High    float64 `json:"high"`
}

// MarshalJSON implements json.Marshaler.
func (r Rate) MarshalJSON() ([]byte, error) {
	if r.Tasks == 0 {
		return []byte("null"), nil
	}
	type plain Rate
	return json.Marshal(plain(r))
}

// Peer is one node of the run.
type Peer struct {
	ID   string `json:"id"`
	Role string `json:"role"`
	// Rollouts counts the rollouts of this peer's training bundles that the learner admitted.
	Rollouts uint64 `json:"rollouts"`
}

// Evaluation is one version measured on held-out tasks.
type Evaluation struct {
	Version uint64 `json:"version"`
	// Seconds is when the sampled measure was complete, from the start of the run.
	Seconds float64 `json:"seconds"`
	// Sampled is at the charter's temperature; Greedy takes the most probable token.
	Sampled Rate `json:"sampled"`
	Greedy  Rate `json:"greedy"`
}

// TrainingStep is one step of the learner: the groups that it consumed and what they did.
type TrainingStep struct {
	// Version is the release that the step made.
	Version uint64  `json:"version"`
	Seconds float64 `json:"seconds"`
	// Groups were consumed, of which ZeroVariance taught nothing because all their rollouts had the same reward.
	Groups       int `json:"groups"`
	ZeroVariance int `json:"zero_variance"`
	// Learned of Groups taught something.
	Learned int `json:"learned"`
	// Asked is how many groups the step's release asked of all nodes together.
	Asked    int `json:"asked"`
	Rollouts int `json:"rollouts"`
	// Tokens counts the positions of the training sequences, prompts included.
	Tokens int `json:"tokens"`
	// Reward is the mean reward of the consumed rollouts. This and the figures below are null if they were not measured or are
	// not finite.
	Reward *float64 `json:"reward"`
	// AdvantageStd is the standard deviation of the trained completions' advantages. EffectiveSamples is the share of trained
	// tokens that would teach as much if all counted alike.
	AdvantageStd     *float64 `json:"advantage_std"`
	EffectiveSamples *float64 `json:"effective_samples"`
	// ClipFraction is the share of trained tokens whose gradient the loss clipped to nothing.
	ClipFraction *float64 `json:"clip_fraction"`
	Entropy      *float64 `json:"entropy"`
	// KLBehaviour is the mean over trained tokens of log(mu) - log(policy), mu being the behaviour policy.
	KLBehaviour *float64 `json:"kl_behaviour"`
	GradNorm    *float64 `json:"grad_norm"`
	// Lag counts the consumed groups by lag: Lag[i] groups had lag i.
	Lag []int `json:"lag"`
	// WaitedSeconds went by until the step had its groups, TrainedSeconds from there until the version was durable.
	WaitedSeconds  float64 `json:"waited_seconds"`
	TrainedSeconds float64 `json:"trained_seconds"`
	// AcceptedRollouts is the running total of admitted rollouts when the step ended.
	AcceptedRollouts uint64 `json:"accepted_rollouts"`
}

// Alert is something that went wrong in training. Package learner/watch defines the kinds.
type Alert struct {
	Kind string `json:"kind"`
	// Since is the version with which it was raised, Over the one with which it ended; nil if it stood at the end.
	Since uint64  `json:"since"`
	Over  *uint64 `json:"over,omitempty"`
	// Message says what was seen, Advice what to do about it.
	Message string `json:"message"`
	Advice  string `json:"advice"`
}

// Example is one held-out task as a policy version solved it, readable by a person.
type Example struct {
	Version uint64 `json:"version"`
	Task    uint64 `json:"task"`
	Outcome string `json:"outcome"`
	// Reward is null if the outcome has none.
	Reward *float64 `json:"reward"`
	Calls  []Call   `json:"calls"`
}

// Call is one LLM request of an example, as text: what was new in its prompt, and the completion.
type Call struct {
	Agent      string `json:"agent"`
	Prompt     string `json:"prompt"`
	Completion string `json:"completion"`
	// Probability is that of the whole completion under the policy that sampled it.
	Probability float64 `json:"probability"`
	// Asked is what the agent asked of sampling, where the network's rules held all the same; empty for nothing.
	Asked string `json:"asked,omitempty"`
}

// lagHistogram sums the steps' lag counts.
func (r *Report) lagHistogram() []int {
	var h []int
	for _, s := range r.TrainingSteps {
		for lag, n := range s.Lag {
			for len(h) <= lag {
				h = append(h, 0)
			}
			h[lag] += n
		}
	}
	return h
}
