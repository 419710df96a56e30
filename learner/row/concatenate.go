package row

import "slices"

// concatenate lays out a rollout as one sequence, as trainers do that know no calls: each call adds what is new of its
// prompt, and its completion. A prompt that continues an earlier call, to the token, adds what follows that call's
// completion; of several such calls the longest counts. Any other prompt is added whole, behind all that came before.
//
// A completion thus has in front of it what its prompt no longer held, and what other roles were told. Where every prompt
// continues the call before, nothing is different: the row is the one of Merge.
//
// From the first call on that would make the row longer than limit, the rollout is left out. Calls that are not trained
// are left out too, but for what trained calls' prompts repeat of them.
func concatenate(calls []Call, limit int) []Row {
	var r Row
	var kept []Call
	for _, c := range calls {
		if !c.Train {
			continue
		}
		held := continued(kept, c.Prompt)
		if len(r.Tokens)+len(c.Prompt)-held+len(c.Completion) > limit {
			break
		}
		r.Altered = r.Altered || !slices.Equal(r.Tokens, c.Prompt[:held])
		r.extend(c, held)
		kept = append(kept, c)
	}
	if len(r.Positions) == 0 {
		return nil
	}
	return []Row{r}
}

// continued is how many tokens the longest call has, prompt and completion, with which a prompt begins; 0 for none.
func continued(calls []Call, prompt []int32) int {
	longest := 0
	for _, c := range calls {
		n := len(c.Prompt) + len(c.Completion)
		if n <= len(prompt) && slices.Equal(slices.Concat(c.Prompt, c.Completion), prompt[:n]) {
			longest = max(longest, n)
		}
	}
	return longest
}
