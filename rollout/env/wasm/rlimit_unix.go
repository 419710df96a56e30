//go:build unix && !dragonfly && !freebsd

package wasm

import "golang.org/x/sys/unix"

// rlimit is a limit that cannot be raised again.
func rlimit(limit uint64) *unix.Rlimit { return &unix.Rlimit{Cur: limit, Max: limit} }

// highest is what a limit can be raised to.
func highest(r unix.Rlimit) uint64 { return r.Max }
