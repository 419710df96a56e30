package learner

import (
	"fmt"

	"github.com/lightswarm/lightswarm/learner/advantage"
	"github.com/lightswarm/lightswarm/learner/credit"
	"github.com/lightswarm/lightswarm/learner/row"
)

// remembering returns the algorithm with what it remembers, and shows groups to its critic, if it has one.
func (l *Learner) remembering(groups []group) (Algorithm, error) {
	a := l.config.Algorithm
	if r, ok := a.Advantage.(advantage.Remembering); ok {
		a.Advantage = r.With(l.memory)
	}
	if c, ok := a.Credit.(credit.Learning); ok {
		a.Credit = c.With(l.critic)
		return a, look(l.config.Trainer, groups)
	}
	return a, nil
}

// teach returns what the critic knows once it has seen the groups, as the step's updates have left the weights: it will be
// asked about states that these weights make. An algorithm without a critic knows nothing.
func (l *Learner) teach(a Algorithm, groups []group) (credit.Memory, error) {
	c, ok := a.Credit.(credit.Learning)
	if !ok {
		return credit.Memory{}, nil
	}
	if err := look(l.config.Trainer, groups); err != nil {
		return credit.Memory{}, err
	}
	seen := make([][]credit.Rollout, len(groups))
	for i, g := range groups {
		seen[i] = a.score(&l.rules, g).seen
	}
	return c.Learn(seen), nil
}

// look shows groups to a critic.
func look(t Trainer, groups []group) error {
	for i := range groups {
		if err := groups[i].look(t); err != nil {
			return fmt.Errorf("computing what the critic sees of bundle %s: %w", groups[i].record.CID, err)
		}
	}
	return nil
}

// look computes the states in which the group's calls were made, as the weights are now. What the group's prompts share is
// run once.
func (g *group) look(t Trainer) error {
	var prompts [][]int32
	for _, r := range g.bundle.Rollouts {
		for _, c := range r.Calls {
			prompts = append(prompts, c.Prompt)
		}
	}
	rows, places := row.Prompts(prompts)
	hidden, err := t.Hidden(rows)
	if err != nil {
		return err
	}
	g.states = make([][][]float32, len(g.bundle.Rollouts))
	at := 0
	for i, r := range g.bundle.Rollouts {
		for range r.Calls {
			place := places[at]
			g.states[i] = append(g.states[i], hidden[place.Row][place.Position])
			at++
		}
	}
	return nil
}
