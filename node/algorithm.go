package node

import (
	"fmt"

	"github.com/lightswarm/lightswarm/learner"
	"github.com/lightswarm/lightswarm/learner/loss"
	"github.com/lightswarm/lightswarm/node/config"
)

// algorithm is the learner's, with the parts that settings name.
func algorithm(s config.Learner) (learner.Algorithm, error) {
	a := learner.DefaultAlgorithm()
	a.Schedule.Peak = s.LearningRate
	l, err := loss.Parse(s.Algorithm.Loss)
	if err != nil {
		return a, fmt.Errorf("learner.loss: %w", err)
	}
	n, err := loss.Normalisers.Parse(s.Algorithm.Normaliser)
	if err != nil {
		return a, fmt.Errorf("learner.normaliser: %w", err)
	}
	a.Loss, a.Normaliser = l.Part, n.Part
	return a, nil
}
