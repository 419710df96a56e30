//go:build !linux

package program

import (
	"errors"
	"os"
	"runtime"
	"syscall"
	"time"
)

var errSystem = errors.New("there is one for Linux alone, and this is " + runtime.GOOS)

func support() (landlock bool, err error) { return false, errSystem }

// Work is the beginning of a program's process.
func Work(string) error { return errSystem }

func attributes() *syscall.SysProcAttr { return nil }

func threads(int) int { return 0 }

func room(*os.Process, string) (files int, bytes int64, err error) { return 0, 0, nil }

func newFolder() (dir string, lock *os.File, err error) { return "", nil, errSystem }

func computedTooLong(*os.ProcessState, time.Duration) bool { return false }
