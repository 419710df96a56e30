package process

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes give a process a session, and with it a group, of its own, and end it when this process ends.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitExit waits until a child has ended, and leaves it to be waited for, so that its number stays its own.
func awaitExit(pid int) error {
	for {
		if err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != unix.EINTR {
			return err
		}
	}
}

// sweep kills the processes outside the group that were started with a mark in their environment. It looks again until
// it finds none, because what it kills may have started another meanwhile; a program that outruns it for so many rounds
// does not end here.
func sweep(marks []string) {
	for range 100 {
		if len(marks) == 0 || !sweepOnce(marks) {
			return
		}
	}
}

// sweepOnce kills all it finds, and says whether it found any. An ended process that nobody has waited for yet shows no
// environment.
func sweepOnce(marks []string) (found bool) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		environ, err := os.ReadFile(file)
		if err != nil || !slices.ContainsFunc(marks, func(m string) bool {
			return bytes.Contains(append([]byte{0}, environ...), []byte("\x00"+m+"\x00"))
		}) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil && pid != os.Getpid() {
			found = true
			_ = syscall.Kill(pid, kill) // it may have ended
		}
	}
	return found
}
