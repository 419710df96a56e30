// Command creditassignment trains on a task where one call of four decides the reward, with every credit assignment, and
// compares how many rollouts each needs until nine of ten of the last 512 succeeded: scripts/checks/credit.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	"github.com/lightswarm/lightswarm/learner/credit"
)

// The assignments that are judged.
const (
	// reference gives each call what the rollout got, whatever the call had to do with it.
	reference = "return"
	// best must need at most half of what the reference needs: from a state that tells how the rollout stands, siblings say
	// what a call is worth, so that the calls that did not decide get nothing.
	best = "gae lambda=0"
	// learned asks a value head instead of siblings. It is shown, not judged.
	learned = "critic lambda=0"
)

func main() {
	seeds := flag.Uint64("seeds", 3, "chains of each assignment")
	quick := flag.Bool("quick", false, "the two assignments that are judged, and the learned critic, alone")
	flag.Parse()
	specs := []string{reference, best, learned}
	if !*quick {
		for _, name := range credit.Kinds.Names() {
			if name != reference {
				specs = append(specs, name)
			}
		}
	}
	if err := run(context.Background(), specs, *seeds); err != nil {
		fmt.Fprintln(os.Stderr, "credit:", err)
		os.Exit(1)
	}
	fmt.Println("credit: holds")
}

// run prints a table of each way to give the reward, and fails unless all hold.
func run(ctx context.Context, specs []string, seeds uint64) error {
	fmt.Printf("until %.0f%% of the last %d rollouts succeed, or %d rollouts; steps of %d groups of %d, learning rate %g, seeds 1 to %d\n",
		100*enough, window, most, groups, groupSize, learningRate, seeds)
	for _, g := range []giving{atEnd, atCall} {
		fmt.Printf("\nthe reward is given to %s\n%s", g, header)
		rows := make(map[string]row)
		for _, spec := range specs {
			chosen, err := credit.Kinds.Parse(spec)
			if err != nil {
				return err
			}
			r := row{spec: spec}
			for seed := range seeds {
				o, err := experiment{chosen.Part, g, seed + 1, most}.run(ctx)
				if err != nil {
					return fmt.Errorf("%s, seed %d: %w", spec, seed+1, err)
				}
				r.outcomes = append(r.outcomes, o)
			}
			rows[spec] = r
			fmt.Print(r.show(rows[reference]))
		}
		if r := rows[best]; !r.halves(rows[reference]) {
			return fmt.Errorf("with the reward given to %s, %s needs more than half of the rollouts that %s needs", g, best, reference)
		}
	}
	return nil
}
