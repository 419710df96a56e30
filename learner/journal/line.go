package journal

import (
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

// Step is a learner.Step, which defines every number. One that is a pointer is null if it was not measured or is not finite.
type Step struct {
	Final          bool    `json:"final"`
	WaitedSeconds  float64 `json:"waited_seconds"`
	TrainedSeconds float64 `json:"trained_seconds"`

	Groups  int `json:"groups"`
	Learned int `json:"learned"`
	Peers   int `json:"peers"`
	// MostPeer supplied MostGroups of Groups; absent without groups.
	MostPeer   string `json:"most_peer,omitempty"`
	MostGroups int    `json:"most_groups"`

	Rollouts     int            `json:"rollouts"`
	RewardMean   *float64       `json:"reward_mean"`
	Solved       *float64       `json:"solved"`
	AdvantageStd *float64       `json:"advantage_std"`
	Environments []Environment  `json:"environments"`
	Lags         map[uint64]int `json:"lags"`
	Drops        map[string]int `json:"drops"`
	// SampledLengths and TrainedLengths count completions of 2^i to 2^(i+1)-1 tokens.
	SampledLengths []int `json:"sampled_lengths"`
	TrainedLengths []int `json:"trained_lengths"`

	CriticExplained *float64 `json:"critic_explained"`

	Rows             int      `json:"rows"`
	Tokens           int      `json:"tokens"`
	TrainedTokens    int      `json:"trained_tokens"`
	CutTokens        int      `json:"cut_tokens"`
	Loss             *float64 `json:"loss"`
	Clipped          *float64 `json:"clipped"`
	RatioMean        *float64 `json:"ratio_mean"`
	RatioMax         *float64 `json:"ratio_max"`
	EffectiveSamples *float64 `json:"effective_samples"`
	OnPolicyError    *float64 `json:"on_policy_error"`
	OnPolicyTokens   int      `json:"on_policy_tokens"`
	KLBehaviour      *float64 `json:"kl_behaviour"`
	Entropy          *float64 `json:"entropy"`
	GradientNorm     *float64 `json:"gradient_norm"`
	LearningRate     *float64 `json:"learning_rate"`
	Updates          int      `json:"updates"`
	Skipped          string   `json:"skipped,omitempty"`

	Waiting       int     `json:"waiting"`
	Active        int     `json:"active"`
	Quota         uint32  `json:"quota"`
	Yield         float64 `json:"yield"`
	GroupsTrained uint64  `json:"groups_trained"`
}

// Part is a learner.Part.
type Part struct {
	Name             string   `json:"name"`
	Rollouts         int      `json:"rollouts"`
	RewardMean       *float64 `json:"reward_mean"`
	Solved           *float64 `json:"solved"`
	Calls            *float64 `json:"calls"`
	CompletionTokens *float64 `json:"completion_tokens"`
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
	Success float64 `json:"success"`
	Low     float64 `json:"low"`
	High    float64 `json:"high"`
	// HeldOutReward is the mean reward of the tasks.
	HeldOutReward float64 `json:"held_out_reward"`
}

// stepOf is the line's part of a step.
func stepOf(s *learner.Step) *Step {
	trained := s.TrainedTokens > 0
	l := &Step{
		Final: s.Final, WaitedSeconds: s.Waited.Seconds(), TrainedSeconds: s.Trained.Seconds(),
		Groups: s.Groups, Learned: s.Learned, Peers: s.Peers, MostGroups: s.MostGroups,
		Rollouts: s.Rollouts, RewardMean: learner.Figure(s.RewardMean, s.Rollouts > 0), Solved: learner.Figure(s.Solved, s.Rollouts > 0),
		AdvantageStd: learner.Figure(s.AdvantageStd, len(s.TrainedLengths) > 0),
		Environments: make([]Environment, len(s.Environments)),
		Lags:         s.Lags, Drops: make(map[string]int, len(s.Drops)),
		SampledLengths: s.SampledLengths, TrainedLengths: s.TrainedLengths,
		CriticExplained: learner.Figure(s.CriticExplained, true),
		Rows:            s.Rows, Tokens: s.Tokens, TrainedTokens: s.TrainedTokens, CutTokens: s.CutTokens,
		Loss: learner.Figure(s.Loss, trained), Clipped: learner.Figure(s.Clipped, trained),
		RatioMean: learner.Figure(s.RatioMean, trained), RatioMax: learner.Figure(s.RatioMax, trained),
		EffectiveSamples: learner.Figure(s.EffectiveSamples, trained),
		OnPolicyError:    learner.Figure(s.OnPolicyError, s.OnPolicyTokens > 0), OnPolicyTokens: s.OnPolicyTokens,
		KLBehaviour: learner.Figure(s.KL, trained), Entropy: learner.Figure(s.Entropy, trained),
		GradientNorm: learner.Figure(s.GradientNorm, trained), LearningRate: learner.Figure(s.LearningRate, trained),
		Updates: s.Updates, Skipped: s.Skipped,
		Waiting: s.Waiting, Active: s.Active, Quota: s.Quota, Yield: s.Yield, GroupsTrained: s.GroupsTrained,
	}
	if s.Most != "" {
		l.MostPeer = s.Most.String()
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
	some := p.Rollouts > 0
	return Part{
		Name: p.Name, Rollouts: p.Rollouts, RewardMean: learner.Figure(p.RewardMean, some), Solved: learner.Figure(p.Solved, some),
		Calls: learner.Figure(p.Calls, some), CompletionTokens: learner.Figure(p.CompletionTokens, p.Calls > 0),
	}
}

// evaluationOf is the line's part of an evaluation.
func evaluationOf(e *learner.Evaluation) *Evaluation {
	low, high := e.Interval()
	return &Evaluation{
		Purpose: e.Purpose.String(), Tasks: e.Tasks, Success: e.Success(), Low: low, High: high, HeldOutReward: e.RewardMean,
	}
}

func alertsOf(alerts []watch.Alert) []Alert {
	var list []Alert
	for _, a := range alerts {
		list = append(list, Alert(a))
	}
	return list
}
