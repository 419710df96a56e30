package loss_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lightswarm/lightswarm/learner/loss"
)

func TestParse(t *testing.T) {
	for spec, want := range map[string]struct {
		canonical string
		made      loss.Function
	}{
		"dppo":         {"dppo threshold=0.2 cap=4 kl=0.001", loss.Default},
		"ppo high=0.3": {"ppo low=0.2 high=0.3", loss.PPO{Low: 0.2, High: 0.3}},
		"ppo-dual":     {"ppo-dual low=0.2 high=0.28 cap=3", loss.TwoSided{Low: 0.2, High: 0.28, Cap: 3}},
		" tis\tcap=3 +  veto + k2 weight=1e+0 ": {
			"tis cap=3 + veto low=0.0001 high=100 + k2 weight=1",
			loss.Penalty{Loss: loss.Masked{Loss: loss.TIS{Cap: 3}, Mask: loss.Veto{Low: 1e-4, High: 100}}, Estimator: loss.K2, Weight: 1},
		},
	} {
		got, err := loss.Parse(spec)
		if err != nil {
			t.Errorf("%q: %v", spec, err)
			continue
		}
		if diff := cmp.Diff(want.made, got.Part); diff != "" || got.Spec != want.canonical {
			t.Errorf("%q is %q, want %q (-want +got):\n%s", spec, got.Spec, want.canonical, diff)
		}
		again, err := loss.Parse(got.Spec)
		if err != nil || !cmp.Equal(again, got) {
			t.Errorf("%q is read back as %+v, %v", got.Spec, again, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for spec, want := range map[string]string{
		"ppo-duel":        `unknown loss "ppo-duel"; did you mean ppo-dual; use dppo, ppo, ppo-two-sided, ppo-dual, decoupled, reinforce, tis, cispo, masked-is, gspo, sequence-tis or m2po`,
		"tis cap=0.5":     "loss tis: cap = 0.5: use 1 to 1000000",
		"tis +":           "after +: no addition to a loss is named; use geometric, veto, k1, k2 or k3",
		"tis + dppo":      `after +: unknown addition to a loss "dppo"; use geometric, veto, k1, k2 or k3`,
		"tis + k2 cap=1":  `after +: addition to a loss k2: there is no parameter "cap"; it has weight`,
		"tis + k2 + + k3": `after +: unknown addition to a loss "+"; use geometric, veto, k1, k2 or k3`,
	} {
		if _, err := loss.Parse(spec); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", spec, err, want)
		}
	}
}

func TestNormaliserNames(t *testing.T) {
	for spec, want := range map[string]loss.Normaliser{
		"per-rollout":             loss.PerRollout{},
		"per-token":               loss.PerToken{},
		"per-constant tokens=300": loss.PerConstant{Tokens: 300},
	} {
		if got, err := loss.Normalisers.Parse(spec); err != nil || got.Part != want {
			t.Errorf("%q is %+v, %v", spec, got.Part, err)
		}
	}
}
