//go:build unix

package transformer

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime is the processor time that this process has used: on a shared machine it says more than the clock on the wall.
func cpuTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
