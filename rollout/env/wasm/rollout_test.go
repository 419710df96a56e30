package wasm_test

import (
	"testing"

	"github.com/lightswarm/lightswarm/rollout/env/drivertest"
)

func TestHostileRolloutsAreEnvErrors(t *testing.T) {
	drivertest.HostileRollouts(t, sharedHostile(t), "loop", "memory", "output", "exit")
}
