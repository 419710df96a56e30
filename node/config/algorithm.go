package config

import "github.com/lightswarm/lightswarm/learner/loss"

// Algorithm says how a learner turns rollouts into an update. Each part is a specification as package learner/named has it,
// a name and parameters: "ppo high=0.3".
type Algorithm struct {
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
	_, err := loss.Parse(a.Loss)
	part("learner.loss", err)
	_, err = loss.Normalisers.Parse(a.Normaliser)
	part("learner.normaliser", err)
}
