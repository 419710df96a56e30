//go:build dragonfly || freebsd

package wasm

import "golang.org/x/sys/unix"

func rlimit(limit uint64) *unix.Rlimit { return &unix.Rlimit{Cur: int64(limit), Max: int64(limit)} }
