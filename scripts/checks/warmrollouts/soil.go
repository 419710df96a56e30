package main

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/lightswarm/lightswarm/rollout/process"
)

// soilers are how many rollouts soil what they find: half of them one after the other, half at once.
const soilers = 8

// clean checks that rollouts which soil everything within their reach find nothing of one another, with the modules that a
// program preloads.
func clean(ctx context.Context, python string, preload []string) error {
	command := process.Command{Args: []string{python, "soil.py"}, Dir: "scripts/checks/warmrollouts", Preload: preload}
	return withAgent(ctx, command, func(a *process.Agent) error {
		var mu sync.Mutex
		said := map[string]bool{}
		soil := func() error {
			ctx, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			result, err := a.Run(ctx, &atOnce{}, episode(task))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil:
				return err
			case !strings.HasPrefix(result.Answer, "found nothing drew "):
				return fmt.Errorf("a rollout %s of others", result.Answer)
			case said[result.Answer]:
				return fmt.Errorf("two rollouts draw the same random number: %s", result.Answer)
			}
			said[result.Answer] = true
			return nil
		}
		for range soilers / 2 {
			if err := soil(); err != nil {
				return err
			}
		}
		errs := make(chan error, soilers/2)
		for range cap(errs) {
			go func() { errs <- soil() }()
		}
		var first error
		for range cap(errs) {
			if err := <-errs; first == nil {
				first = err
			}
		}
		return first
	})
}
