package program

import "golang.org/x/sys/unix"

// processor is whose system calls are meant. Numbers from 0x40000000 on, of the interface x32, are not among those allowed.
const processor = unix.AUDIT_ARCH_X86_64

// callsOfProcessor are calls that newer processors have no number for.
var callsOfProcessor = []uint32{
	unix.SYS_ACCESS, unix.SYS_CREAT, unix.SYS_STAT, unix.SYS_LSTAT, unix.SYS_NEWFSTATAT, unix.SYS_GETDENTS,
	unix.SYS_READLINK, unix.SYS_MKDIR, unix.SYS_RMDIR, unix.SYS_UNLINK, unix.SYS_RENAME, unix.SYS_LINK, unix.SYS_SYMLINK,
	unix.SYS_DUP2, unix.SYS_PIPE, unix.SYS_POLL, unix.SYS_SELECT, unix.SYS_EPOLL_CREATE, unix.SYS_EPOLL_WAIT,
	unix.SYS_EVENTFD, unix.SYS_SIGNALFD, unix.SYS_ARCH_PRCTL, unix.SYS_GETPGRP, unix.SYS_PAUSE, unix.SYS_ALARM,
	unix.SYS_TIME,
}

func conditionalOfProcessor() map[uint32]code {
	return map[uint32]code{unix.SYS_OPEN: cutNothing(1)}
}
