package warmstart_test

import (
	"testing"

	"github.com/lightswarm/lightswarm/policy/base"
)

// The policy that policy/base carries is the one that the recipe made.
func TestBasePolicyIsTheRecipes(t *testing.T) {
	s, err := base.Load()
	if err != nil {
		t.Fatal(err)
	}
	const made = "717a5067b07895a949daa885a164c6e5377ff1d2debd01ea43c8d0cc9c43a1b1"
	if got := s.Digest().String(); got != made {
		t.Errorf("policy/base carries %s, not %s", got, made)
	}
}
