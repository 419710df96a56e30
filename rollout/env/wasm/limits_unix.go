//go:build unix

package wasm

import "golang.org/x/sys/unix"

// limitResources bounds what this process may use. Where a system does not know a limit, or a lower one is in force, it
// stays as it is.
func limitResources(memory uint64) {
	lower := func(resource int, limit uint64) {
		var now unix.Rlimit
		if unix.Getrlimit(resource, &now) != nil || highest(now) < limit {
			return
		}
		unix.Setrlimit(resource, rlimit(limit)) //nolint:errcheck // see above
	}
	lower(unix.RLIMIT_CORE, 0)
	lower(unix.RLIMIT_NOFILE, 64)
	lower(unix.RLIMIT_DATA, memory)
}
