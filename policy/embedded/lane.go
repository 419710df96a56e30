package embedded

import (
	"context"
	"fmt"
	"slices"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/policy/grammar"
	"github.com/lightswarm/lightswarm/policy/transformer"
)

// call is one request on its way through the scheduler. The scheduler owns it until it sends to done, and nobody looks
// at it after its context was cancelled.
type call struct {
	ctx      context.Context
	resident *resident
	score    bool
	tokens   []int32 // the prompt, or what is to be scored
	// reusable is how many of tokens may come from a cache: the logits after all later ones are wanted.
	reusable int

	request    policy.Request
	room       int // how many tokens the completion may have
	completion []int32
	logProbs   []float32
	finish     policy.FinishReason
	// matcher, if it is not nil, says which tokens of the completion are allowed; of a call that scores, from the first
	// that is scored on.
	matcher *grammar.Matcher

	done chan error // has room for the one result
}

// lane is a sequence that runs for a call. Its tokens are the call's and then the completion's; its cache is nil while
// it waits for a prefix that another lane is about to compute.
type lane struct {
	sequence
	call     *call
	segment  transformer.Segment // what the next step feeds, if anything
	sampler  sampler
	finished bool
	err      error
}

func newLane(c *call) *lane {
	return &lane{sequence: sequence{resident: c.resident, tokens: c.tokens}, call: c}
}

// prepare sets the segment that l feeds next, with at most budget tokens if it is a piece of the call's own, and
// returns what is left of the budget.
func (l *lane) prepare(budget int) int {
	l.segment = transformer.Segment{}
	if l.cache == nil {
		return budget
	}
	from, to := l.cache.Len(), len(l.tokens)
	if l.call.score {
		to-- // nothing follows the last token
	}
	if len(l.call.completion) == 0 {
		to = min(to, from+budget)
		budget -= to - from
	}
	l.segment = transformer.Segment{Cache: l.cache, Tokens: l.tokens[from:to]}
	if l.call.score {
		l.segment.Wanted = max(0, to-max(from, l.call.reusable))
	} else if to == len(l.tokens) {
		l.segment.Wanted = min(1, to-from)
	}
	return budget
}

// take looks at the logits after the next wanted token of l's segment. It runs on the decoder's goroutines, for one lane
// on one after the other.
func (l *lane) take(logits []float32) {
	c := l.call
	if l.finished {
		return
	}
	if c.matcher != nil {
		transformer.Restrict(logits, c.matcher.Allowed())
	}
	if c.score {
		target := c.tokens[c.reusable+1+len(c.logProbs)]
		if c.matcher != nil && !c.matcher.Advance(target) {
			l.err, l.finished = fmt.Errorf("%w: the grammar does not allow token %d, which is %d", ErrRequest, c.reusable+1+len(c.logProbs), target), true
			return
		}
		logProb, err := l.sampler.logProb(logits, target)
		c.logProbs = append(c.logProbs, logProb)
		l.err, l.finished = err, err != nil || len(c.logProbs) == cap(c.logProbs)
		return
	}
	token, logProb, err := l.sampler.sample(logits, c.request.Sampling, c.request.Key, len(c.completion))
	if err != nil {
		l.err, l.finished = err, true
		return
	}
	if c.matcher != nil {
		c.matcher.Advance(token)
	}
	l.tokens = append(l.tokens, token)
	c.completion = append(c.completion, token)
	c.logProbs = append(c.logProbs, logProb)
	switch {
	case slices.Contains(c.request.Stop, token):
		c.finish, l.finished = policy.FinishStop, true
	case len(c.completion) == c.room:
		c.finish, l.finished = policy.FinishLength, true
	}
}
