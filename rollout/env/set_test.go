package env_test

import (
	"errors"
	"testing"

	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/calc"
	"github.com/lightswarm/lightswarm/wire"
)

func TestSetFindsEnvironmentsByCID(t *testing.T) {
	set, err := env.NewSet(calc.New())
	if err != nil {
		t.Fatal(err)
	}
	reference, err := env.Reference(calc.New())
	if err != nil {
		t.Fatal(err)
	}
	if reference.TrainTasks != 1<<20 || reference.ValidationTasks != 1<<12 || reference.Weight != 1 {
		t.Errorf("reference %+v", reference)
	}
	if e, err := set.Get(reference.Manifest); err != nil || e != env.Environment(calc.New()) {
		t.Errorf("Get = %v, %v", e, err)
	}
	if _, err := set.Get(wire.SumCID(nil)); !errors.Is(err, env.ErrUnknown) {
		t.Errorf("an unknown CID gives %v", err)
	}
}

func TestSetRefusesABadManifest(t *testing.T) {
	if _, err := env.NewSet(&coin{}); !errors.Is(err, wire.ErrMalformed) {
		t.Errorf("NewSet = %v", err)
	}
}
