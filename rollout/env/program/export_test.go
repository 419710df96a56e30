package program

import (
	"testing"
)

// For tests from outside the package.
var (
	NeedSandbox = needSandbox
	TestDriver  = testDriver
)

// OpenHostile opens the hostile program with 3 s for a request.
func OpenHostile(t testing.TB) *Environment {
	m := manifest()
	m.Limits.Steps = 3000
	return openHostile(t, m)
}
