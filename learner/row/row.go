// Package row lays out the calls of a rollout as sequences that a trainer can run.
//
// A call's prompt usually repeats the calls before it. When it begins with the exact token ids of an earlier call's
// prompt and completion, both share one sequence: the model then sees each shared token once, and every trained token
// has the same context, hence the same log-probability and gradient, as in a sequence of its own. Calls whose ids do
// not match, because an agent summarised its history, plays another role or re-serialised an argument, get sequences
// of their own. Text is never compared. Everything here is pure.
package row

import "slices"

// Call is one call of a rollout.
type Call struct {
	// Prompt and Completion are the exact token ids; the prompt is not empty.
	Prompt, Completion []int32
	// LogProbs are the behaviour policy's, one for each token of the completion.
	LogProbs []float32
	// Advantage is the same for every token of the completion.
	Advantage float64
	// Train says whether the completion is trained on. A call that is not may still be another's context.
	Train bool
	// Grammar is what the completion was sampled within, encoded, and Room how many tokens it might have had; empty for
	// none.
	Grammar string
	Room    int
}

// Row is one sequence. The slices Positions, LogProbs and Advantages run parallel.
type Row struct {
	Tokens []int32
	// Positions are the indices into Tokens of the trained tokens, increasing, each at least 1.
	Positions []int32
	// LogProbs are what the behaviour policy recorded for them.
	LogProbs []float32
	// Advantages are theirs.
	Advantages []float64
	// Grammars are the completions among them that were sampled within one, in order.
	Grammars []Grammar
	// Altered says that some trained tokens have other tokens before them than when they were sampled, so that LogProbs
	// are not those of this sequence. Only level Concatenated makes such rows.
	Altered bool
}

// Grammar is what a completion was sampled within: Tokens of the trained tokens from From on, which is an index into
// Positions. The completion is the tokens at these positions, all of it.
type Grammar struct {
	Encoded      string
	Room         int
	From, Tokens int
}

// Merge lays out the calls of one rollout, in the order in which they were made. Each trained token is in exactly one
// row. A row is extended by the first call that continues it; of several rows that a call continues it takes the
// longest. A row without trained tokens is left out.
func Merge(calls []Call) []Row {
	var rows []Row
	for _, c := range calls {
		best := -1
		for i := range rows {
			if n := len(rows[i].Tokens); n <= len(c.Prompt) && slices.Equal(rows[i].Tokens, c.Prompt[:n]) &&
				(best < 0 || n > len(rows[best].Tokens)) {
				best = i
			}
		}
		if best < 0 {
			rows = append(rows, Row{})
			best = len(rows) - 1
		}
		rows[best].extend(c, len(rows[best].Tokens))
	}
	return slices.DeleteFunc(rows, func(r Row) bool { return len(r.Positions) == 0 })
}

// extend appends a call, of whose prompt the row holds the first tokens.
func (r *Row) extend(c Call, held int) {
	r.Tokens = append(r.Tokens, c.Prompt[held:]...)
	start := len(r.Tokens)
	r.Tokens = append(r.Tokens, c.Completion...)
	if !c.Train {
		return
	}
	if c.Grammar != "" && len(c.Completion) > 0 {
		r.Grammars = append(r.Grammars, Grammar{c.Grammar, c.Room, len(r.Positions), len(c.Completion)})
	}
	for i := range c.Completion {
		r.Positions = append(r.Positions, int32(start+i))
		r.LogProbs = append(r.LogProbs, c.LogProbs[i])
		r.Advantages = append(r.Advantages, c.Advantage)
	}
}

// Pack splits rows, in order, into micro-batches of consecutive rows with at most budget tokens each; a row longer
// than the budget gets a micro-batch of its own. size returns the number of tokens of row i of n. The result lists the
// end of each micro-batch.
func Pack(n int, size func(i int) int, budget int) (ends []int) {
	used := 0
	for i := range n {
		s := size(i)
		if used > 0 && used+s > budget {
			ends = append(ends, i)
			used = 0
		}
		used += s
	}
	if n > 0 {
		ends = append(ends, n)
	}
	return ends
}
