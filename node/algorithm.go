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

// LearnerConfig is a learner's configuration with what settings say. Its network and its parts are for the caller to add.
// An error names the setting that is wrong.
func LearnerConfig(settings config.Learner) (learner.Config, error) {
	c := learner.DefaultConfig()
	c.Batch.Groups, c.Batch.Dynamic, c.Batch.Patience = settings.Groups, settings.Dynamic, settings.Patience
	c.Intake.Waiting = max(c.Intake.Waiting, 4*c.Batch.Most())
	if settings.Waiting > 0 {
		c.Intake.Waiting = settings.Waiting
	}
	c.Intake.Queue, c.Intake.PeerPending, c.Intake.Bytes = settings.Queue, settings.PeerPending, int(settings.FetchBytes)
	c.Stop.MaxVersion, c.Stop.Target, c.Stop.Hold = uint64(settings.Steps), settings.Target, settings.Hold
	c.EvaluateEvery, c.FinalPatience = uint64(settings.EvaluateEvery), settings.FinalPatience
	var err error
	c.Algorithm, err = algorithm(settings)
	return c, err
}

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
