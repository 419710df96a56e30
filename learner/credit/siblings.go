package credit

// Siblings is a Critic without a model: it takes a call for worth what the group's other rollouts got from the same
// decision point on, or, when none of them came there, what they got from their beginning. Asking rollouts from a state
// instead of a value model is VinePPO's way (Kazemnejad et al. 2024, arXiv 2410.01679), with the siblings that there are in
// place of new samples. A rollout alone in its group is worth 0.
type Siblings struct {
	// Discount is that of the GAE which asks; 0 stands for 1.
	Discount float64
}

// tally sums up one return of each of some rollouts.
type tally struct {
	sum      float64
	rollouts int
}

// without is the mean when one of the returns is left out; ok says whether any is left.
func (t tally) without(own float64) (mean float64, ok bool) {
	if t.rollouts < 2 {
		return 0, false
	}
	return (t.sum - own) / float64(t.rollouts-1), true
}

// Values implements Critic.
func (s Siblings) Values(group []Rollout) [][]float64 {
	var beginnings tally
	points := make(map[string]tally)
	starts := make([]float64, len(group))
	// A rollout counts once at a decision point, with its first call there.
	firsts := make([]map[string]float64, len(group))
	for i, r := range group {
		ahead := ToGo(s).Assign(r)
		starts[i] = r.Reward
		if len(ahead) > 0 {
			starts[i] = ahead[0]
		}
		beginnings = tally{beginnings.sum + starts[i], beginnings.rollouts + 1}
		firsts[i] = make(map[string]float64)
		for j, c := range r.Calls {
			key := decision(c)
			if _, again := firsts[i][key]; again {
				continue
			}
			firsts[i][key] = ahead[j]
			points[key] = tally{points[key].sum + ahead[j], points[key].rollouts + 1}
		}
	}
	values := make([][]float64, len(group))
	for i, r := range group {
		values[i] = make([]float64, len(r.Calls))
		for j, c := range r.Calls {
			key := decision(c)
			value, ok := points[key].without(firsts[i][key])
			if !ok {
				value, _ = beginnings.without(starts[i])
			}
			values[i][j] = value
		}
	}
	return values
}
