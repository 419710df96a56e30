// Command againstmasking trains agents with one call a row, as the paper does (Luo et al. 2025, arXiv 2508.03680, section
// 3.3), and with one masked row a rollout, which the paper argues against, and says which wins where:
// scripts/checks/against-masking.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/lightswarm/lightswarm/learner/row"
)

func main() {
	quick := flag.Bool("quick", false, "2 seeds and a quarter of the steps")
	rate := flag.Float64("rate", 0.003, "learning rate")
	flag.Parse()
	e, seeds := experiment{rate: *rate, steps: 400}, uint64(5)
	if *quick {
		e.steps, seeds = e.steps/4, 2
	}
	if err := compare(context.Background(), e, seeds); err != nil {
		fmt.Fprintln(os.Stderr, "against-masking:", err)
		os.Exit(1)
	}
	fmt.Println("against-masking: the comparisons are fair")
}

// compare prints a table of every agent at both levels, and what it says. It fails if a chain does, or if the two levels
// did not have the same chances; never because of which wins.
func compare(ctx context.Context, e experiment, seeds uint64) error {
	fmt.Printf("%d steps, learning rate %g, seeds 1 to %d; success at the end: of the last %d rollouts, along: of all\n\n",
		e.steps, e.rate, seeds, window)
	fmt.Print(header)
	var said []string
	for _, e.agent = range agents {
		var p pair
		for e.seed = 1; e.seed <= seeds; e.seed++ {
			if err := p.play(ctx, e); err != nil {
				return fmt.Errorf("%s, seed %d: %w", e.agent.name, e.seed, err)
			}
		}
		if err := p.fair(); err != nil {
			return fmt.Errorf("%s: the comparison is not fair: %w", e.agent.name, err)
		}
		fmt.Print(show(e.agent.name, row.Transition, p.transition), show(e.agent.name, row.Concatenated, p.concatenated))
		said = append(said, fmt.Sprintf("%s (%s)\n  end:   %s\n  along: %s\n", e.agent.name, e.agent.about,
			p.verdict(outcome.end), p.verdict(outcome.along)))
	}
	fmt.Println()
	for _, s := range said {
		fmt.Print(s)
	}
	return nil
}
