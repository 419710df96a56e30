//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package process

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes give a process a session, and with it a group, of its own.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// awaitExit waits until a child has ended, and leaves it to be waited for, so that its number stays its own.
func awaitExit(pid int) error {
	queue, err := unix.Kqueue()
	if err != nil {
		return err
	}
	defer unix.Close(queue)
	var change unix.Kevent_t
	unix.SetKevent(&change, pid, unix.EVFILT_PROC, unix.EV_ADD|unix.EV_ONESHOT)
	change.Fflags = unix.NOTE_EXIT
	for {
		_, err := unix.Kevent(queue, []unix.Kevent_t{change}, make([]unix.Kevent_t, 1), nil)
		switch err {
		case unix.EINTR:
		case unix.ESRCH: // it has ended already
			return nil
		default:
			return err
		}
	}
}

// sweep does nothing: only Linux shows which environment others were started with.
func sweep([]string) {}
