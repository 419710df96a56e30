package experiment

import "github.com/lightswarm/lightswarm/testnet/report"

// figure is a number that a run has, or lacks.
type figure struct {
	// name is its field in results.json, title the head of its column in the page, format how it is written there.
	name, title, format string
	of                  func(r *report.Report, threshold float64) (value float64, ok bool)
	// timed figures are of the threshold, and are shown if there is one.
	timed bool
}

// figures are those of a run, in the order of the page. docs/experiments.md defines them.
var figures = []figure{
	{name: "start", title: "start", format: "%.3f", of: func(r *report.Report, _ float64) (float64, bool) { return rate(r.HeldOut.Start) }},
	{name: "end", title: "end", format: "%.3f", of: func(r *report.Report, _ float64) (float64, bool) { return rate(r.HeldOut.End) }},
	{name: "best", title: "best", format: "%.3f", of: func(r *report.Report, _ float64) (float64, bool) {
		if r.Best == nil {
			return 0, false
		}
		return rate(r.Best.Sampled)
	}},
	{name: "greedy_end", title: "greedy end", format: "%.3f", of: func(r *report.Report, _ float64) (float64, bool) { return rate(r.Greedy.End) }},
	{name: "steps", title: "steps", format: "%.0f", of: func(r *report.Report, _ float64) (float64, bool) { return float64(r.Steps), true }},
	{name: "rollouts", title: "rollouts", format: "%.0f", of: func(r *report.Report, _ float64) (float64, bool) { return float64(r.RolloutsTrained), true }},
	{name: "seconds", title: "seconds", format: "%.1f", of: func(r *report.Report, _ float64) (float64, bool) { return r.Seconds, true }},
	{name: "steps_to_threshold", title: "steps to it", format: "%.1f", timed: true, of: func(r *report.Report, threshold float64) (float64, bool) {
		e, ok := reached(r, threshold)
		return float64(e.Version), ok
	}},
	{name: "rollouts_to_threshold", title: "rollouts to it", format: "%.0f", timed: true, of: func(r *report.Report, threshold float64) (float64, bool) {
		e, ok := reached(r, threshold)
		return float64(rolloutsUpTo(r, e.Version)), ok
	}},
	{name: "seconds_to_threshold", title: "seconds to it", format: "%.1f", timed: true, of: func(r *report.Report, threshold float64) (float64, bool) {
		e, ok := reached(r, threshold)
		return e.Seconds, ok
	}},
}

// rate is a rate's success, if it was measured.
func rate(r report.Rate) (float64, bool) { return r.Success, r.Tasks > 0 }

// reached is the first evaluation whose sampled success is at least threshold.
func reached(r *report.Report, threshold float64) (report.Evaluation, bool) {
	for _, e := range r.Evaluations {
		if threshold > 0 && e.Sampled.Success >= threshold {
			return e, true
		}
	}
	return report.Evaluation{}, false
}

// rolloutsUpTo counts the rollouts that the steps up to a version consumed.
func rolloutsUpTo(r *report.Report, version uint64) (n int) {
	for _, s := range r.TrainingSteps {
		if s.Version <= version {
			n += s.Rollouts
		}
	}
	return n
}

// curve is a figure that a run has of many versions.
type curve struct {
	// name is its field in results.json and the name of its plot's file, title what the plot's axis says.
	name, title string
	// share says that it is 0 to 1 always.
	share bool
	of    func(r *report.Report) map[uint64]float64
}

// curves are those of a run, in the order of the page. docs/experiments.md defines them.
var curves = []curve{
	{"success", "held-out success, sampled", true, func(r *report.Report) map[uint64]float64 {
		return evaluated(r, func(e *report.Evaluation) report.Rate { return e.Sampled })
	}},
	{"greedy", "held-out success, greedy", true, func(r *report.Report) map[uint64]float64 {
		return evaluated(r, func(e *report.Evaluation) report.Rate { return e.Greedy })
	}},
	{"reward", "mean reward of the rollouts trained on", false, trained(func(s *report.TrainingStep) *float64 { return s.Reward })},
	{"entropy", "entropy, nats a token", false, trained(func(s *report.TrainingStep) *float64 { return s.Entropy })},
	{"kl_behaviour", "KL from the behaviour policy, nats a token", false, trained(func(s *report.TrainingStep) *float64 { return s.KLBehaviour })},
	{"clip_fraction", "share of tokens that the loss bounded", true, trained(func(s *report.TrainingStep) *float64 { return s.ClipFraction })},
	{"effective_samples", "effective share of samples", true, trained(func(s *report.TrainingStep) *float64 { return s.EffectiveSamples })},
	{"lag", "mean lag of the groups, versions", false, trained(lag)},
}

// evaluated is a measure of each version that has it.
func evaluated(r *report.Report, measure func(*report.Evaluation) report.Rate) map[uint64]float64 {
	values := map[uint64]float64{}
	for i := range r.Evaluations {
		if v, ok := rate(measure(&r.Evaluations[i])); ok {
			values[r.Evaluations[i].Version] = v
		}
	}
	return values
}

// trained is a figure of each step that has it: most need one that changed the weights.
func trained(of func(*report.TrainingStep) *float64) func(*report.Report) map[uint64]float64 {
	return func(r *report.Report) map[uint64]float64 {
		values := map[uint64]float64{}
		for i := range r.TrainingSteps {
			if v := of(&r.TrainingSteps[i]); v != nil {
				values[r.TrainingSteps[i].Version] = *v
			}
		}
		return values
	}
}

// lag is the mean of a step's groups.
func lag(s *report.TrainingStep) *float64 {
	sum, groups := 0, 0
	for i, n := range s.Lag {
		sum += i * n
		groups += n
	}
	if groups == 0 {
		return nil
	}
	mean := float64(sum) / float64(groups)
	return &mean
}
