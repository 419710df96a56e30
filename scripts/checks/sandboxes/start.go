package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/wasm"
)

// startAtMost is how long an episode may take, at the median, from its instance's beginning to its first answer.
const startAtMost = 5 * time.Millisecond

// start measures the start of episodes, one after the other, with the compiled module in the cache: a few when they are not
// judged.
func start(ctx context.Context, d *wasm.Driver, p *env.Package, judged bool) error {
	episodes, opens := 200, 9
	if !judged {
		episodes, opens = 20, 3
	}
	began := time.Now()
	if err := opened(ctx, d, p, func(env.Environment) error { return nil }); err != nil {
		return err
	}
	compiling := time.Since(began)
	var opening []time.Duration
	for range opens {
		began := time.Now()
		if err := opened(ctx, d, p, func(env.Environment) error {
			opening = append(opening, time.Since(began))
			return nil
		}); err != nil {
			return err
		}
	}
	var starts []time.Duration
	if err := opened(ctx, d, p, func(e env.Environment) error {
		for i := range episodes {
			began := time.Now()
			episode, err := e.Reset(ctx, "train", uint64(i)) //nolint:gosec // small
			if err != nil {
				return err
			}
			starts = append(starts, time.Since(began))
			if err := episode.Close(); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	slices.Sort(starts)
	slices.Sort(opening)
	median := starts[len(starts)/2]
	fmt.Printf("an episode starts in %.2f ms at the median, %.2f ms at the 99th percentile\n", ms(median), ms(starts[len(starts)*99/100]))
	fmt.Printf("its environment opens in %.0f ms from the cache, at the median, and in %.0f ms without\n", ms(opening[len(opening)/2]), ms(compiling))
	if judged && median > startAtMost {
		return fmt.Errorf("an episode takes longer to start than %s", startAtMost)
	}
	return nil
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
