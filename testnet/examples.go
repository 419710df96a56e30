package testnet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/lightswarm/lightswarm/policy/tokenizer"
	"github.com/lightswarm/lightswarm/testnet/report"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
)

// Examples are the rollouts of a bundle as text, in the bundle's order. U+FFFD in the place of a token says that the
// tokenizer is not that of the bundle's policy.
func Examples(b *bundle.Bundle, tok *tokenizer.Tokenizer) []report.Example {
	list := make([]report.Example, len(b.Rollouts))
	for i, r := range b.Rollouts {
		list[i] = report.Example{Version: b.PolicyVersion, Task: r.Task, Outcome: r.Outcome.String()}
		if r.Outcome.Trainable() {
			reward := float64(r.Reward)
			list[i].Reward = &reward
		}
		var before []int32
		for _, c := range r.Calls {
			sum := 0.0
			for _, l := range c.LogProbs {
				sum += float64(l)
			}
			list[i].Calls = append(list[i].Calls, report.Call{
				Agent:       c.Agent,
				Prompt:      tok.Decode(c.Prompt[common(before, c.Prompt):]),
				Completion:  tok.Decode(c.Completion),
				Probability: math.Exp(sum),
				Asked:       c.Asked,
			})
			before = append(slices.Clone(c.Prompt), c.Completion...)
		}
	}
	return list
}

// common is the length of the longest common prefix.
func common(a, b []int32) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// heldOut reads the first tasks of a version's evaluation bundles. A bundle that is gone makes the list shorter.
func heldOut(ctx context.Context, bundles []string, tasks int, tok *tokenizer.Tokenizer, get func(ctx context.Context, cid string) ([]byte, error)) ([]report.Example, error) {
	var list []report.Example
	var missing error
	for _, cid := range bundles {
		data, err := get(ctx, cid)
		if err != nil {
			missing = errors.Join(missing, err)
			continue
		}
		b, err := bundle.Decode(data, bundle.Limits{})
		if err != nil {
			return nil, fmt.Errorf("read evaluation bundle %s: %w", cid, err)
		}
		if b.Purpose == wire.PurposeEvaluateSampled {
			list = append(list, Examples(b, tok)...)
		}
	}
	slices.SortFunc(list, func(a, b report.Example) int { return cmp.Compare(a.Task, b.Task) })
	list = slices.CompactFunc(list, func(a, b report.Example) bool { return a.Task == b.Task })
	return list[:min(tasks, len(list))], missing
}
