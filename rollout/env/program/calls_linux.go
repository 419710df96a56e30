//go:build linux && (amd64 || arm64)

package program

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// allowed are the system calls that programs may make, in whatever way; callsOfProcessor are more of them. What reaches
// other processes, the network or the system's state is not among them, nor what changes files without opening them, or
// takes memory that no limit counts.
var allowed = []uint32{
	unix.SYS_READ, unix.SYS_WRITE, unix.SYS_READV, unix.SYS_WRITEV, unix.SYS_PREAD64, unix.SYS_PWRITE64, unix.SYS_PREADV,
	unix.SYS_PWRITEV, unix.SYS_PREADV2, unix.SYS_PWRITEV2, unix.SYS_LSEEK, unix.SYS_CLOSE,
	unix.SYS_FSTAT, unix.SYS_STATX, unix.SYS_STATFS, unix.SYS_FSTATFS, unix.SYS_FACCESSAT, unix.SYS_FACCESSAT2,
	unix.SYS_GETDENTS64, unix.SYS_GETCWD, unix.SYS_CHDIR, unix.SYS_FCHDIR, unix.SYS_READLINKAT, unix.SYS_MKDIRAT,
	unix.SYS_UNLINKAT, unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2, unix.SYS_LINKAT, unix.SYS_SYMLINKAT, unix.SYS_FTRUNCATE,
	unix.SYS_FSYNC, unix.SYS_FDATASYNC, unix.SYS_SYNC_FILE_RANGE, unix.SYS_FLOCK, unix.SYS_DUP,
	unix.SYS_DUP3, unix.SYS_PIPE2, unix.SYS_UMASK, unix.SYS_FADVISE64, unix.SYS_COPY_FILE_RANGE, unix.SYS_SENDFILE,
	unix.SYS_SPLICE,
	unix.SYS_PPOLL, unix.SYS_PSELECT6, unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT,
	unix.SYS_EPOLL_PWAIT2, unix.SYS_EVENTFD2, unix.SYS_TIMERFD_CREATE, unix.SYS_TIMERFD_SETTIME, unix.SYS_TIMERFD_GETTIME,
	unix.SYS_SIGNALFD4,
	unix.SYS_BRK, unix.SYS_MMAP, unix.SYS_MUNMAP, unix.SYS_MREMAP, unix.SYS_MPROTECT, unix.SYS_MADVISE, unix.SYS_MINCORE,
	unix.SYS_MSYNC, unix.SYS_MEMBARRIER,
	unix.SYS_FUTEX, unix.SYS_FUTEX_WAITV, unix.SYS_SET_ROBUST_LIST, unix.SYS_GET_ROBUST_LIST, unix.SYS_SET_TID_ADDRESS,
	unix.SYS_GETTID, unix.SYS_RSEQ, unix.SYS_GETCPU, unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY,
	unix.SYS_SCHED_GETPARAM, unix.SYS_SCHED_GETSCHEDULER, unix.SYS_SCHED_GET_PRIORITY_MAX, unix.SYS_SCHED_GET_PRIORITY_MIN,
	unix.SYS_EXIT, unix.SYS_EXIT_GROUP, unix.SYS_EXECVE, unix.SYS_GETPID, unix.SYS_GETPPID, unix.SYS_GETUID,
	unix.SYS_GETEUID, unix.SYS_GETGID, unix.SYS_GETEGID, unix.SYS_GETGROUPS, unix.SYS_GETRESUID, unix.SYS_GETRESGID,
	unix.SYS_GETPGID, unix.SYS_GETSID, unix.SYS_GETRLIMIT, unix.SYS_SETRLIMIT, unix.SYS_GETRUSAGE, unix.SYS_TIMES,
	unix.SYS_UNAME, unix.SYS_SYSINFO, unix.SYS_GETPRIORITY, unix.SYS_WAIT4, unix.SYS_WAITID, unix.SYS_RESTART_SYSCALL,
	unix.SYS_GETRANDOM, unix.SYS_CAPGET,
	unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_RT_SIGPENDING,
	unix.SYS_RT_SIGTIMEDWAIT, unix.SYS_RT_SIGSUSPEND, unix.SYS_SIGALTSTACK, unix.SYS_SETITIMER, unix.SYS_GETITIMER,
	unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_CLOCK_GETTIME, unix.SYS_CLOCK_GETRES, unix.SYS_GETTIMEOFDAY,
	unix.SYS_TIMER_CREATE, unix.SYS_TIMER_SETTIME, unix.SYS_TIMER_GETTIME, unix.SYS_TIMER_GETOVERRUN,
	unix.SYS_TIMER_DELETE,
	unix.SYS_RECVFROM, unix.SYS_RECVMSG, unix.SYS_SHUTDOWN, unix.SYS_GETSOCKOPT, unix.SYS_GETSOCKNAME,
	unix.SYS_GETPEERNAME,
}

// missing are calls that a filter cannot look into, and that libraries replace by others where a system has none.
var missing = []uint32{unix.SYS_CLONE3, unix.SYS_OPENAT2}

// Requests of ioctl that are the same on these processors.
const (
	fioNonblock       = 0x5421
	fioNotCloseOnExec = 0x5450
	fioCloseOnExec    = 0x5451
)

// code is a part of a filter. Whatever is not a jump or a load ends it.
type code []unix.SockFilter

// What becomes of a call.
const (
	permit      = unix.SECCOMP_RET_ALLOW
	refuse      = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	absent      = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	unsupported = unix.SECCOMP_RET_ERRNO | uint32(unix.EOPNOTSUPP)
)

// Where struct seccomp_data has a call's number, its processor and its arguments, each of 8 bytes, the low ones first.
const (
	atNumber    = 0
	atProcessor = 4
	atArguments = 16
)

func load(offset uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
}

func result(what uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: what}
}

// when goes on with the next instruction if what was loaded compares like this with a value, and else skips some.
func when(comparison uint16, value uint32, skip int) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_K | comparison, Jf: uint8(skip), K: value}
}

// low and high are the halves of an argument. Of one that is an int, the system looks at the low half alone.
func low(argument uint32) unix.SockFilter  { return load(atArguments + 8*argument) }
func high(argument uint32) unix.SockFilter { return load(atArguments + 8*argument + 4) }

// oneOf permits a call whose argument, an int, is one of these.
func oneOf(argument uint32, values ...uint32) code {
	c := code{low(argument)}
	for _, v := range values {
		c = append(c, when(unix.BPF_JEQ, v, 1), result(permit))
	}
	return append(c, result(refuse))
}

// cutNothing permits to open a file unless that cuts it and does not open it to be written, in the argument flags. Before
// its third version, Landlock lets whoever can read a file do that.
func cutNothing(flags uint32) code {
	return code{
		low(flags),
		when(unix.BPF_JSET, unix.O_TRUNC, 4), // else to the last permission
		{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: unix.O_ACCMODE},
		when(unix.BPF_JEQ, unix.O_WRONLY, 1), result(permit),
		when(unix.BPF_JEQ, unix.O_RDWR, 1), result(permit),
		result(refuse),
	}
}

// conditional are the calls that depend on their arguments, for a process of this number.
func conditional(self uint32) map[uint32]code {
	return map[uint32]code{
		unix.SYS_OPENAT: cutNothing(2),
		// Threads, not processes, and such as show in the system's lists of what the process has: all have the same open files,
		// and stop when they are told to.
		unix.SYS_CLONE: {
			low(0), when(unix.BPF_JSET, unix.CLONE_VFORK, 1), result(refuse),
			when(unix.BPF_JSET, unix.CLONE_THREAD, 2), when(unix.BPF_JSET, unix.CLONE_FILES, 1), result(permit),
			result(refuse),
		},
		unix.SYS_CLOSE_RANGE: oneOf(2, 0, unix.CLOSE_RANGE_CLOEXEC),
		// It takes any room in an instant, also beyond the limit of a file. Libraries then write instead.
		unix.SYS_FALLOCATE:         {result(unsupported)},
		unix.SYS_KILL:              oneOf(0, self),
		unix.SYS_TGKILL:            oneOf(0, self),
		unix.SYS_PRLIMIT64:         oneOf(0, 0, self),
		unix.SYS_SCHED_SETAFFINITY: oneOf(0, 0),
		unix.SYS_PRCTL:             oneOf(0, unix.PR_SET_NAME, unix.PR_GET_NAME, unix.PR_SET_VMA, unix.PR_GET_DUMPABLE, unix.PR_CAPBSET_READ),
		unix.SYS_IOCTL:             oneOf(1, unix.TCGETS, unix.TIOCGWINSZ, unix.TIOCINQ, fioNonblock, fioCloseOnExec, fioNotCloseOnExec),
		unix.SYS_FCNTL: oneOf(1, unix.F_DUPFD, unix.F_DUPFD_CLOEXEC, unix.F_GETFD, unix.F_SETFD, unix.F_GETFL, unix.F_SETFL,
			unix.F_GETLK, unix.F_SETLK, unix.F_SETLKW, unix.F_OFD_GETLK, unix.F_OFD_SETLK, unix.F_OFD_SETLKW),
		// A pair of sockets reaches nothing but itself, unless an address is given.
		unix.SYS_SOCKETPAIR: oneOf(0, unix.AF_UNIX),
		unix.SYS_SENDTO:     {high(4), when(unix.BPF_JEQ, 0, 3), low(4), when(unix.BPF_JEQ, 0, 1), result(permit), result(refuse)},
	}
}

// filter is what becomes of each system call of a process.
func filter(self uint32) code {
	f := code{load(atProcessor), when(unix.BPF_JEQ, processor, 1), load(atNumber)}
	// Of another processor, what is loaded is its name, which is no number of a call.
	call := func(number uint32, what code) {
		f = append(f, when(unix.BPF_JEQ, number, len(what)))
		f = append(f, what...)
	}
	for _, number := range append(allowed, callsOfProcessor...) {
		call(number, code{result(permit)})
	}
	for number, what := range conditional(self) {
		call(number, what)
	}
	for number, what := range conditionalOfProcessor() {
		call(number, what)
	}
	for _, number := range missing {
		call(number, code{result(absent)})
	}
	return append(f, result(refuse))
}

// filterSupported is an error if this system cannot filter system calls.
func filterSupported() error {
	action := uint32(unix.SECCOMP_RET_ERRNO)
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action))); errno != 0 {
		return fmt.Errorf("this system cannot filter system calls (seccomp): %w", errno)
	}
	return nil
}

// restrictCalls leaves the thread the allowed system calls. It has no new privileges.
func restrictCalls() error {
	f := filter(uint32(os.Getpid()))
	program := unix.SockFprog{Len: uint16(len(f)), Filter: &f[0]}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program))); errno != 0 {
		return errno
	}
	return nil
}
