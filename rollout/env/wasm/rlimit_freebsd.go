//go:build dragonfly || freebsd

package wasm

import "golang.org/x/sys/unix"

// rlimit is a limit that cannot be raised again.
func rlimit(limit uint64) *unix.Rlimit { return &unix.Rlimit{Cur: int64(limit), Max: int64(limit)} }

// highest is what a limit can be raised to.
func highest(r unix.Rlimit) uint64 { return uint64(r.Max) }
