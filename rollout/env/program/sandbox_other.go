//go:build !linux

package program

import (
	"errors"
	"runtime"
	"syscall"
)

var errSystem = errors.New("there is one for Linux alone, and this is " + runtime.GOOS)

func support() (landlock bool, err error) { return false, errSystem }

// Work is the beginning of a program's process.
func Work(string) error { return errSystem }

func attributes() *syscall.SysProcAttr { return nil }

func threads(int) int { return 0 }

func room(int, string) (files int, bytes int64) { return 0, 0 }
