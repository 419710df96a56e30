package openenv

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain wants that nothing goes on when all environments are closed.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
