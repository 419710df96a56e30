package credit

// Intermediate gives every call the rollout's reward and Weight times the call's own, and nothing of what other calls
// were given. It suits automatic intermediate rewards, such as a tool call's status, that judge the call they belong to
// and do not tell how the rollout went on (Luo et al. 2025, arXiv 2508.03680). ToGo also credits a call with
// the rewards of those after it.
type Intermediate struct {
	// Weight is how much a call's own reward counts beside the rollout's; 0 stands for 1.
	Weight float64
}

// Assign implements Assigner.
func (m Intermediate) Assign(r Rollout) []float64 {
	weight := m.Weight
	if weight == 0 {
		weight = 1
	}
	returns := make([]float64, len(r.Calls))
	for i, c := range r.Calls {
		returns[i] = r.Reward + float64(weight*c.given())
	}
	return returns
}
