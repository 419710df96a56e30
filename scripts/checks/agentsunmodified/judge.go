package main

import "fmt"

// The figures that a run must show.
const (
	// tasks is how many held-out tasks measure the first and the last version.
	tasks = 96
	// endAtLeast is the sampled success of the last version. The warm start has about a third.
	endAtLeast = 0.55
	// groupSize is how many rollouts of a task are compared.
	groupSize = 8
	// errorsAtMost is the share of the rollouts trained on that may end in the agent's, the environment's or the clock's
	// failure.
	errorsAtMost = 0.02
)

// rate is a measure in a report.
type rate struct {
	Success float64 `json:"success"`
	Low     float64 `json:"low"`
	High    float64 `json:"high"`
	Tasks   int     `json:"tasks"`
}

// change is a measure of the first and of the last version.
type change struct {
	Start rate `json:"start"`
	End   rate `json:"end"`
}

// measured is the part of report.json that is judged.
type measured struct {
	HeldOut          change  `json:"held_out"`
	Greedy           change  `json:"greedy"`
	Seconds          float64 `json:"seconds"`
	RolloutsAccepted uint64  `json:"rollouts_accepted"`
	AgentProcesses   uint64  `json:"agent_processes"`
	TrainingSteps    []struct {
		// Groups were consumed; Rollouts of theirs have a reward.
		Groups   int `json:"groups"`
		Rollouts int `json:"rollouts"`
	} `json:"training_steps"`
}

// judge says what does not hold.
func judge(m measured) error {
	rollouts, scored := 0, 0
	for _, s := range m.TrainingSteps {
		rollouts, scored = rollouts+s.Groups*groupSize, scored+s.Rollouts
	}
	switch start, end := m.HeldOut.Start, m.HeldOut.End; {
	case start.Tasks != tasks || end.Tasks != tasks:
		return fmt.Errorf("measured on %d and %d tasks, want %d", start.Tasks, end.Tasks, tasks)
	case end.Low <= start.High:
		return fmt.Errorf("success did not rise clearly: %.3f to %.3f at first, %.3f to %.3f at the end", start.Low, start.High, end.Low, end.High)
	case end.Success < endAtLeast:
		return fmt.Errorf("ends at %.3f, below %.2f", end.Success, endAtLeast)
	case m.RolloutsAccepted == 0 || rollouts == 0:
		return fmt.Errorf("nothing was trained")
	case m.AgentProcesses < m.RolloutsAccepted:
		return fmt.Errorf("%d processes cannot have played the %d rollouts", m.AgentProcesses, m.RolloutsAccepted)
	case float64(rollouts-scored) > errorsAtMost*float64(rollouts):
		return fmt.Errorf("%d of %d rollouts failed", rollouts-scored, rollouts)
	}
	return nil
}
