package watch

import (
	"fmt"
	"slices"

	"github.com/lightswarm/lightswarm/learner"
)

const (
	// certain is how many standard deviations below the best evaluations another must be: 99.9% of the normal distribution lies
	// within so many.
	certain = 3.2905267314919255
	// pooled is how many evaluations in a row are compared with others as one: the best single one of many is high by luck.
	pooled = 3
)

// heldOut compares evaluations with the best ones, and the training reward with that of then, by their standard errors.
type heldOut struct {
	newest []learner.Evaluation // up to pooled
	best   learner.Evaluation   // several as one, of the version of the last of them
	// rewards are those of the newest steps, before those of the steps around the best evaluations: the last ones until then,
	// or, as long as there are too few, the first ones from then on.
	rewards, before recent
}

func (r *heldOut) step(s *learner.Step) (verdict, string) {
	if s.Rollouts > 0 {
		r.rewards.add(s.RewardMean, window)
		if r.best.Tasks > 0 && len(r.before) < window {
			r.before.add(s.RewardMean, window)
		}
	}
	return unknown, ""
}

func (r *heldOut) evaluated(e *learner.Evaluation) (verdict, string) {
	r.newest = append(r.newest, *e)
	r.newest = r.newest[max(0, len(r.newest)-pooled):]
	all := learner.Evaluation{Version: e.Version}
	for _, one := range r.newest {
		all.Tasks += one.Tasks
		all.Successes += one.Successes
	}
	if all.Success() >= r.best.Success() {
		r.best, r.before = all, slices.Clone(r.rewards)
		return good, ""
	}
	now, before := r.rewards.mean(), r.before.mean()
	_, surely := e.Difference(r.best, certain)
	_, probably := e.Difference(r.best, learner.Confident)
	switch {
	case surely < 0 && now-before > 2*noise(r.rewards, r.before):
		return bad, fmt.Sprintf("held-out success has fallen to %.3f, from %.3f up to version %d, while the training reward rose to %.3g, from %.3g",
			e.Success(), r.best.Success(), r.best.Version, now, before)
	case probably >= 0:
		return good, ""
	}
	return between, ""
}
