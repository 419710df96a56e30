package virtualtime

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
)

// alone is held under the race detector by the test that runs.
var alone sync.Mutex

// Test runs f in a bubble, as synctest.Test does. Under the race detector the process has one processor meanwhile, and
// tests that call Test at once run one after the other.
func Test(t *testing.T, f func(*testing.T)) {
	t.Helper()
	if raceDetector {
		alone.Lock()
		defer alone.Unlock()
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	}
	synctest.Test(t, f)
}
