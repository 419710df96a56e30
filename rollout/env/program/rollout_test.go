package program_test

import (
	"testing"

	"github.com/lightswarm/lightswarm/rollout/env/drivertest"
	"github.com/lightswarm/lightswarm/rollout/env/program"
)

func TestHostileRolloutsAreEnvErrors(t *testing.T) {
	drivertest.HostileRollouts(t, program.OpenHostile(t), "fork", "memory", "output", "exit")
}
