//go:build unix

package process

import "syscall"

// signal is what a process group is told.
type signal = syscall.Signal

const (
	ask  = syscall.SIGTERM
	kill = syscall.SIGKILL
)

// signalGroup signals a process group. One that has ended does not mind.
func signalGroup(leader int, s signal) { _ = syscall.Kill(-leader, s) }
