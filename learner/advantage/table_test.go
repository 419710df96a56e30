package advantage_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/lightswarm/lightswarm/learner/advantage"
)

func TestKinds(t *testing.T) {
	want := map[string]advantage.Estimator{
		"rloo":                  advantage.RLOO{},
		"dr-grpo":               advantage.DrGRPO{},
		"grpo":                  advantage.GRPO{},
		"reinforce-pp":          advantage.ReinforcePPBatch{},
		"reinforce-pp-baseline": advantage.ReinforcePP{},
		"rae":                   advantage.RAE{Decay: 0.95},
	}
	for _, name := range advantage.Kinds.Names() {
		got, err := advantage.Kinds.Parse(name)
		if diff := cmp.Diff(want[name], got.Part, cmpopts.IgnoreUnexported(advantage.RAE{})); err != nil || diff != "" {
			t.Errorf("%s: error %v (-want +got):\n%s", name, err, diff)
		}
	}
	if got, err := advantage.Kinds.Parse("rae decay=0.5"); err != nil || got.Part.(advantage.RAE).Decay != 0.5 {
		t.Errorf("%+v, %v", got, err)
	}
}
