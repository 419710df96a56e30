package module

import "golang.org/x/sys/unix"

// limitResources keeps this process in bounds that a module within its own does not reach. Where a lower limit is in force,
// it stays.
func limitResources() {
	// Compiling takes the most besides the module's memory, of which an old and a new one exist while it grows.
	const data = 1<<30 + 3*MemoryBytes
	for resource, limit := range map[int]uint64{unix.RLIMIT_CORE: 0, unix.RLIMIT_NOFILE: 64, unix.RLIMIT_DATA: data} {
		var now unix.Rlimit
		if unix.Getrlimit(resource, &now) == nil && now.Max > limit {
			unix.Setrlimit(resource, &unix.Rlimit{Cur: limit, Max: limit}) //nolint:errcheck // the module's own limits hold
		}
	}
}
