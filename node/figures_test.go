package node

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/lightswarm/lightswarm/learner"
	"github.com/lightswarm/lightswarm/node/api"
)

// The event of a step tells all else if a figure is not finite, and says null where nothing was measured.
func TestStepEventsOfAnyFigures(t *testing.T) {
	undone := learner.Step{
		Version: 3, TrainedTokens: 5, Rollouts: 2, RewardMean: 0.5, Loss: math.NaN(), KL: math.Inf(1), GradientNorm: math.NaN(), Skipped: "why",
	}
	for name, test := range map[string]struct {
		step learner.Step
		null []string
	}{
		"undone": {undone, []string{"loss", "kl", "gradient_norm", "advantage_std"}},
		"empty":  {learner.Step{Version: 4}, []string{"reward_mean", "solved", "loss", "entropy", "clipped", "gradient_norm", "learning_rate"}},
	} {
		data, err := json.Marshal(api.Event{Step: stepJSON(&test.step)})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var got struct{ Step map[string]any }
		if err := json.Unmarshal(data, &got); err != nil {
			t.Fatal(err)
		}
		if got.Step["version"] != float64(test.step.Version) {
			t.Errorf("%s: %s", name, data)
		}
		for _, field := range test.null {
			if v, there := got.Step[field]; v != nil || !there {
				t.Errorf("%s: %s is %v", name, field, v)
			}
		}
	}
	if shown := stepJSON(&undone); *shown.RewardMean != 0.5 || *shown.Entropy != 0 {
		t.Error("what was measured is not told")
	}
}
