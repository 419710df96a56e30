package virtualtime_test

import (
	"sync"
	"testing"
	"time"

	"github.com/lightswarm/lightswarm/virtualtime"
)

// TestManyTimers fires timers from many goroutines at once. Under the race detector that broke nearly each run of
// synctest.Test on two processors.
func TestManyTimers(t *testing.T) {
	virtualtime.Test(t, func(t *testing.T) {
		start := time.Now()
		var running sync.WaitGroup
		for i := range 100 {
			running.Go(func() {
				for k := range 300 {
					timer := time.NewTimer(time.Duration(i%7+k%3) * time.Millisecond)
					select {
					case <-timer.C:
					case <-time.After(time.Duration(k%5) * time.Millisecond):
					}
					timer.Reset(time.Millisecond)
					timer.Stop()
				}
			})
		}
		running.Wait()
		// The goroutine that waits longest takes the shorter of 6, 7 or 8 and of 0 to 4 milliseconds each time.
		if got, want := time.Since(start), 600*time.Millisecond; got != want {
			t.Errorf("%v passed, want %v", got, want)
		}
	})
}
