//go:build !unix

package transformer

import "time"

var started = time.Now()

func cpuTime() time.Duration { return time.Since(started) }
