package config

import (
	"github.com/lightswarm/lightswarm/learner/advantage"
	"github.com/lightswarm/lightswarm/learner/credit"
	"github.com/lightswarm/lightswarm/learner/loss"
	"github.com/lightswarm/lightswarm/learner/row"
)

// Algorithm says how a learner turns rollouts into an update. Each part is a specification as package learner/named has it,
// a name and parameters: "ppo high=0.3".
type Algorithm struct {
	// Credit is one of credit.Kinds, Advantage one of advantage.Kinds.
	Credit, Advantage string
	// Level is a row.Level's name, which has no parameters.
	Level string
	// Agents are as credit.Agents takes them; none trains all.
	Agents []string
	// Loss is one of loss.Kinds, with what is put around it: loss.Parse reads it.
	Loss string
	// Normaliser is one of loss.Normalisers.
	Normaliser string
}

// check says what is wrong.
func (a *Algorithm) check(check func(ok bool, key, problem string)) {
	part := func(key string, err error) {
		if err != nil {
			check(false, key, err.Error())
		}
	}
	_, err := credit.Kinds.Parse(a.Credit)
	part("learner.credit", err)
	_, err = advantage.Kinds.Parse(a.Advantage)
	part("learner.advantage", err)
	_, err = row.ParseLevel(a.Level)
	part("learner.level", err)
	part("learner.agents", credit.Agents(a.Agents).Check())
	_, err = loss.Parse(a.Loss)
	part("learner.loss", err)
	_, err = loss.Normalisers.Parse(a.Normaliser)
	part("learner.normaliser", err)
}
