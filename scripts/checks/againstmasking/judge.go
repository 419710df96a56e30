package main

import (
	"context"
	"fmt"
	"slices"

	statistics "github.com/lightswarm/lightswarm/experiment"
	"github.com/lightswarm/lightswarm/learner/row"
	"github.com/lightswarm/lightswarm/scripts/checks/chains"
)

// pair is the chains of one agent at both levels, one of each for each seed.
type pair struct{ transition, concatenated []outcome }

// play adds an experiment's outcomes at both levels.
func (p *pair) play(ctx context.Context, e experiment) error {
	for _, level := range []struct {
		row.Level
		outcomes *[]outcome
	}{{row.Transition, &p.transition}, {row.Concatenated, &p.concatenated}} {
		e.level = level.Level
		o, err := e.run(ctx)
		if err != nil {
			return fmt.Errorf("level %s: %w", e.level, err)
		}
		*level.outcomes = append(*level.outcomes, o)
	}
	return nil
}

// fair says what makes the levels' chances differ: for a seed both must play as many rollouts, begin with the same, and
// train on as many tokens.
func (p pair) fair() error {
	const first = chains.Groups * chains.GroupSize
	for i, t := range p.transition {
		c := p.concatenated[i]
		switch {
		case len(t.won) != len(c.won):
			return fmt.Errorf("seed %d: %d rollouts as transitions, %d concatenated", i+1, len(t.won), len(c.won))
		case !slices.Equal(t.won[:min(first, len(t.won))], c.won[:min(first, len(c.won))]):
			return fmt.Errorf("seed %d: the first rollouts differ", i+1)
		case t.work.trained != c.work.trained:
			return fmt.Errorf("seed %d: %d tokens trained as transitions, %d concatenated", i+1, t.work.trained, c.work.trained)
		}
	}
	return nil
}

// verdict says which level has more of a figure, by the differences of chains with the same seed.
func (p pair) verdict(figure func(outcome) float64) string {
	var differences []float64
	for i, t := range p.transition {
		differences = append(differences, figure(t)-figure(p.concatenated[i]))
	}
	e := statistics.NewEstimate(differences)
	if e == nil || e.Low == nil {
		return "too few seeds to tell"
	}
	winner := "no winner"
	switch {
	case *e.Low > 0:
		winner = "transition wins"
	case *e.High < 0:
		winner = "concatenated wins"
	}
	return fmt.Sprintf("%s: transition less concatenated is %+.3f, 95%% interval %+.3f to %+.3f", winner, e.Mean, *e.Low, *e.High)
}

const format = "%-10s %-13s %-17s %-17s %-9s %-8s %s\n"

var header = fmt.Sprintf(format, "agent", "level", "success, end", "along", "trained", "run", "scored again")

// show is a line of the table: means over the seeds with half of their 95% interval, and tokens of one chain.
func show(agent string, level row.Level, outcomes []outcome) string {
	w := outcomes[0].work
	return fmt.Sprintf(format, agent, level, mean(outcomes, outcome.end), mean(outcomes, outcome.along),
		fmt.Sprint(w.trained), fmt.Sprint(w.ran), fmt.Sprint(w.rescored))
}

func mean(outcomes []outcome, figure func(outcome) float64) string {
	var values []float64
	for _, o := range outcomes {
		values = append(values, figure(o))
	}
	e := statistics.NewEstimate(values)
	if e.Low == nil {
		return fmt.Sprintf("%.3f", e.Mean)
	}
	return fmt.Sprintf("%.3f +- %.3f", e.Mean, *e.High-e.Mean)
}
