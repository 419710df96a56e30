package credit_test

import (
	"strings"
	"testing"

	"github.com/lightswarm/lightswarm/learner/credit"
)

func TestAgents(t *testing.T) {
	for _, c := range []struct {
		chosen credit.Agents
		agent  string
		want   bool
	}{
		{nil, "writer", true},
		{credit.Agents{"writer"}, "writer", true},
		{credit.Agents{"writer"}, "rewriter", false},
		{credit.Agents{"checker", "*writer"}, "rewriter", true},
		{credit.Agents{"player-?"}, "player-2", true},
		{credit.Agents{"player-?"}, "player-12", false},
	} {
		if got := c.chosen.Has(c.agent); got != c.want {
			t.Errorf("%q has %s: %v", c.chosen, c.agent, got)
		}
		if err := c.chosen.Check(); err != nil {
			t.Error(err)
		}
	}
	for _, broken := range []string{"", "[a", `a\`} {
		if err := (credit.Agents{"writer", broken}).Check(); err == nil || !strings.Contains(err.Error(), "such as writer") {
			t.Errorf("%q: %v", broken, err)
		}
	}
}
