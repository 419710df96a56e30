package lags

import (
	"context"
	"encoding/binary"
	"math"
	"time"

	"github.com/lightswarm/lightswarm/learner"
	"github.com/lightswarm/lightswarm/policy"
)

// waits are the times that rollouts wait for their environments, by Pareto's law with index 2: the mean is twice the
// least, and there is no variance. One call in a hundred waits ten times the least or longer.
type waits struct {
	// least is the shortest wait.
	least time.Duration
}

// of is how long a call waits. The key decides, which differs between any two calls: the same draws wait for the same
// times, whoever plays them, and whatever the policy says.
func (w waits) of(key policy.SampleKey) time.Duration {
	// A key is a hash, and sampling draws from a cipher's stream under it, so a wait says nothing of what will be sampled.
	// The half keeps the chance above 0.
	chance := (float64(binary.BigEndian.Uint32(key[:4])) + 0.5) / (1 << 32)
	return time.Duration(float64(w.least) / math.Sqrt(chance))
}

// slow is a session whose calls wait first, as behind a tool that takes its time.
type slow struct {
	policy.Session
	waits waits
}

// Generate implements policy.Session.
func (s slow) Generate(ctx context.Context, r policy.Request) (policy.Completion, error) {
	timer := time.NewTimer(s.waits.of(r.Key))
	defer timer.Stop()
	select {
	case <-timer.C:
		return s.Session.Generate(ctx, r)
	case <-ctx.Done():
		return policy.Completion{}, context.Cause(ctx)
	}
}

// timed is a trainer whose updates take a time, which under virtual time nothing else does.
type timed struct {
	learner.Embedded
	update time.Duration
}

// Step implements learner.Trainer.
func (t timed) Step(learningRate float64, o learner.Optimiser) (float64, error) {
	time.Sleep(t.update)
	return t.Embedded.Step(learningRate, o)
}
