package learner

import (
	"fmt"

	"github.com/lightswarm/lightswarm/learner/row"
)

// rescore gives the altered rows of a step the log-probs that the weights before its first update have for them. What the
// policy said when it sampled these tokens was of another sequence: a ratio to that would compare contexts, not weights.
// The ratios of such rows are hence to the version before the step, whichever version sampled them, and start at exactly 1;
// they do not tell how old the data is, and their lag counts as 0.
func rescore(t Trainer, minibatches []minibatch, budget int) error {
	var altered []*trainRow
	var rows []row.Row
	for _, m := range minibatches {
		for i := range m.rows {
			if r := &m.rows[i]; r.Altered {
				altered, rows = append(altered, r), append(rows, r.Row)
			}
		}
	}
	start := 0
	for _, end := range row.Pack(len(rows), func(i int) int { return len(rows[i].Tokens) }, budget) {
		logProbs, err := t.LogProbs(rows[start:end])
		if err != nil {
			return fmt.Errorf("computing log-probs of concatenated rollouts: %w", err)
		}
		for i, p := range logProbs {
			altered[start+i].LogProbs, altered[start+i].lag = p, 0
		}
		start = end
	}
	return nil
}
