package journal

import (
	"encoding/json"
	"math"
	"time"

	"github.com/lightswarm/lightswarm/learner"
	"github.com/lightswarm/lightswarm/learner/watch"
)

// The types of lines.
const (
	TypeStep       = "step"
	TypeEvaluation = "evaluation"
)

// Line is an object of metrics.jsonl. Fields are only ever added.
type Line struct {
	Type string `json:"type"`
	// Network is the network's id.
	Network string    `json:"network"`
	Time    time.Time `json:"time"`
	// Version is the one that the step made, or that was measured.
	Version uint64 `json:"version"`
	// Alerts are those that stand.
	Alerts []Alert `json:"alerts,omitempty"`
	*Step
	*Evaluation
}

// Alert is a watch.Alert.
type Alert struct {
	Kind    watch.Kind `json:"kind"`
	Since   uint64     `json:"since"`
	Message string     `json:"message"`
	Advice  string     `json:"advice"`
}

// Number is a figure; one that is infinite or not a number is null.
type Number float64

// MarshalJSON implements json.Marshaler.
func (n Number) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(n)) || math.IsInf(float64(n), 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// Step is a learner.Step, which defines every number.
type Step struct {
	Final          bool   `json:"final"`
	WaitedSeconds  Number `json:"waited_seconds"`
	TrainedSeconds Number `json:"trained_seconds"`

	Groups  int `json:"groups"`
	Learned int `json:"learned"`
	Peers   int `json:"peers"`
	// MostPeer supplied MostGroups of Groups; absent without groups.
	MostPeer   string `json:"most_peer,omitempty"`
	MostGroups int    `json:"most_groups"`

	Rollouts int `json:"rollouts"`
	// RewardMean and Solved are absent if no rollout has a reward.
	RewardMean   *Number        `json:"reward_mean,omitempty"`
	Solved       *Number        `json:"solved,omitempty"`
	AdvantageStd Number         `json:"advantage_std"`
	Environments []Environment  `json:"environments"`
	Lags         map[uint64]int `json:"lags"`
	Drops        map[string]int `json:"drops"`
	// SampledLengths and TrainedLengths count completions of 2^i to 2^(i+1)-1 tokens.
	SampledLengths []int `json:"sampled_lengths"`
	TrainedLengths []int `json:"trained_lengths"`

	Rows             int    `json:"rows"`
	Tokens           int    `json:"tokens"`
	TrainedTokens    int    `json:"trained_tokens"`
	Loss             Number `json:"loss"`
	Clipped          Number `json:"clipped"`
	RatioMean        Number `json:"ratio_mean"`
	RatioMax         Number `json:"ratio_max"`
	EffectiveSamples Number `json:"effective_samples"`
	OnPolicyError    Number `json:"on_policy_error"`
	OnPolicyTokens   int    `json:"on_policy_tokens"`
	KLBehaviour      Number `json:"kl_behaviour"`
	Entropy          Number `json:"entropy"`
	GradientNorm     Number `json:"gradient_norm"`
	LearningRate     Number `json:"learning_rate"`
	Updates          int    `json:"updates"`
	Skipped          string `json:"skipped,omitempty"`

	Waiting       int    `json:"waiting"`
	Active        int    `json:"active"`
	Quota         uint32 `json:"quota"`
	GroupsTrained uint64 `json:"groups_trained"`
}

// Part is a learner.Part.
type Part struct {
	Name             string `json:"name"`
	Rollouts         int    `json:"rollouts"`
	RewardMean       Number `json:"reward_mean"`
	Solved           Number `json:"solved"`
	Calls            Number `json:"calls"`
	CompletionTokens Number `json:"completion_tokens"`
}

// Environment is a learner.EnvironmentPart.
type Environment struct {
	Part
	Groups int    `json:"groups"`
	Agents []Part `json:"agents"`
}

// Evaluation is a complete learner.Evaluation.
type Evaluation struct {
	Purpose string `json:"purpose"`
	Tasks   int    `json:"tasks"`
	// Success lies between Low and High with 95% confidence.
	Success Number `json:"success"`
	Low     Number `json:"low"`
	High    Number `json:"high"`
	// HeldOutReward is the mean reward of the tasks.
	HeldOutReward Number `json:"held_out_reward"`
}

// stepOf is the line's part of a step.
func stepOf(s *learner.Step) *Step {
	l := &Step{
		Final: s.Final, WaitedSeconds: Number(s.Waited.Seconds()), TrainedSeconds: Number(s.Trained.Seconds()),
		Groups: s.Groups, Learned: s.Learned, Peers: s.Peers, MostGroups: s.MostGroups,
		Rollouts: s.Rollouts, AdvantageStd: Number(s.AdvantageStd), Environments: make([]Environment, len(s.Environments)),
		Lags: s.Lags, Drops: make(map[string]int, len(s.Drops)),
		SampledLengths: s.SampledLengths, TrainedLengths: s.TrainedLengths,
		Rows: s.Rows, Tokens: s.Tokens, TrainedTokens: s.TrainedTokens, Loss: Number(s.Loss), Clipped: Number(s.Clipped),
		RatioMean: Number(s.RatioMean), RatioMax: Number(s.RatioMax), EffectiveSamples: Number(s.EffectiveSamples),
		OnPolicyError: Number(s.OnPolicyError), OnPolicyTokens: s.OnPolicyTokens,
		KLBehaviour: Number(s.KL), Entropy: Number(s.Entropy), GradientNorm: Number(s.GradientNorm),
		LearningRate: Number(s.LearningRate), Updates: s.Updates, Skipped: s.Skipped,
		Waiting: s.Waiting, Active: s.Active, Quota: s.Quota, GroupsTrained: s.GroupsTrained,
	}
	if s.Most != "" {
		l.MostPeer = s.Most.String()
	}
	if s.Rollouts > 0 {
		reward, solved := Number(s.RewardMean), Number(s.Solved)
		l.RewardMean, l.Solved = &reward, &solved
	}
	for reason, n := range s.Drops {
		l.Drops[string(reason)] = n
	}
	for i, e := range s.Environments {
		l.Environments[i] = Environment{Part: partOf(e.Part), Groups: e.Groups, Agents: make([]Part, len(e.Agents))}
		for j, a := range e.Agents {
			l.Environments[i].Agents[j] = partOf(a)
		}
	}
	return l
}

func partOf(p learner.Part) Part {
	return Part{
		Name: p.Name, Rollouts: p.Rollouts, RewardMean: Number(p.RewardMean), Solved: Number(p.Solved),
		Calls: Number(p.Calls), CompletionTokens: Number(p.CompletionTokens),
	}
}

// evaluationOf is the line's part of an evaluation.
func evaluationOf(e *learner.Evaluation) *Evaluation {
	low, high := e.Interval()
	return &Evaluation{
		Purpose: e.Purpose.String(), Tasks: e.Tasks, Success: Number(e.Success()), Low: Number(low), High: Number(high),
		HeldOutReward: Number(e.RewardMean),
	}
}

func alertsOf(alerts []watch.Alert) []Alert {
	var list []Alert
	for _, a := range alerts {
		list = append(list, Alert(a))
	}
	return list
}
