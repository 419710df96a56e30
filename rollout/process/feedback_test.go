//go:build unix

package process

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lightswarm/lightswarm/rollout/agent"
)

// What programs say of their runs, in their own ways, comes out of them.
func TestFeedback(t *testing.T) {
	one, half := 1.0, 0.5
	for script, want := range map[string]agent.Result{
		"lightning.py": {End: agent.Answered, Answer: "seven", Feedback: &agent.Feedback{Reward: &one}},
		"spans.py": {End: agent.Answered, Answer: "done", Feedback: &agent.Feedback{
			Reward: &half,
			Calls:  map[int]agent.CallFeedback{0: {Agent: "critic"}},
			Tools:  []agent.ToolOutcome{{Call: 0, Tool: "search", Failed: true}},
		}},
	} {
		f := newFixture(t, nil, func(o *Options) {
			o.Command.Args = []string{python(), script}
			o.Roles = []string{"solver", "critic"}
		})
		got, err := f.play(t, "6*7")
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v, (-want +got):\n%s\n%s", script, err, diff, f.log)
		}
	}
}
