package node

import (
	"fmt"

	"github.com/lightswarm/lightswarm/learner"
	"github.com/lightswarm/lightswarm/learner/advantage"
	"github.com/lightswarm/lightswarm/learner/credit"
	"github.com/lightswarm/lightswarm/learner/loss"
	"github.com/lightswarm/lightswarm/learner/row"
	"github.com/lightswarm/lightswarm/node/config"
)

// algorithm is the learner's, with the parts that settings name.
func algorithm(s config.Learner) (learner.Algorithm, error) {
	a := learner.DefaultAlgorithm()
	a.Schedule.Peak = s.LearningRate
	c, err := credit.Kinds.Parse(s.Algorithm.Credit)
	if err != nil {
		return a, fmt.Errorf("learner.credit: %w", err)
	}
	e, err := advantage.Kinds.Parse(s.Algorithm.Advantage)
	if err != nil {
		return a, fmt.Errorf("learner.advantage: %w", err)
	}
	if a.Level, err = row.ParseLevel(s.Algorithm.Level); err != nil {
		return a, fmt.Errorf("learner.level: %w", err)
	}
	l, err := loss.Parse(s.Algorithm.Loss)
	if err != nil {
		return a, fmt.Errorf("learner.loss: %w", err)
	}
	n, err := loss.Normalisers.Parse(s.Algorithm.Normaliser)
	if err != nil {
		return a, fmt.Errorf("learner.normaliser: %w", err)
	}
	a.Credit, a.Advantage, a.Agents = c.Part, e.Part, s.Algorithm.Agents
	a.Loss, a.Normaliser = l.Part, n.Part
	return a, nil
}
