package program

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// support says what this system has to contain programs with.
func support() (landlock bool, err error) {
	if err := filterSupported(); err != nil {
		return false, err
	}
	return landlockVersion() > 0, nil
}

// attributes: the program has a session of its own, and ends with the thread that started it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}

// Work is the beginning of a program's process: it gives up what the program is not to have, and becomes the program. It
// returns only if that fails. The process does nothing else.
func Work(argument string) error {
	// All of it is a property of a thread, and the thread that starts the program is the one that stays.
	runtime.LockOSThread()
	err := closeOthers()
	if err == nil {
		err = work(argument)
	}
	os.NewFile(statusFile, "status").WriteString(err.Error()) //nolint:errcheck // nobody is left to tell
	return err
}

// noCore leaves no room for a memory image of a program that crashes. Where the system hands images to a program of its
// own, which root runs, it minds no limit but this one: what is in an image is other people's too.
const noCore = 1

// closeOthers closes every descriptor but the standard ones when the program starts: also those that the node was started
// with, which it knows nothing of.
func closeOthers() error {
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return fmt.Errorf("look for open files: %w", err)
	}
	for _, entry := range open {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd >= statusFile {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

func work(argument string) error {
	var s setup
	if err := json.Unmarshal([]byte(argument), &s); err != nil || len(s.Command) == 0 {
		return errors.Join(errors.New("this is no setup of a program"), err)
	}
	// That the process ends with its node is a property of a thread too, and this need not be the one that has it.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("end with the node: %w", err)
	}
	if os.Getppid() != s.Node {
		return errors.New("the node has ended")
	}
	// Should the machine run out of memory, this is what it does best without.
	os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0) //nolint:errcheck // not all systems have it
	for _, limit := range []struct {
		resource int
		most     uint64
	}{
		{unix.RLIMIT_CORE, noCore},
		{unix.RLIMIT_NOFILE, 64},
		{unix.RLIMIT_FSIZE, MaxScratchBytes},
		{unix.RLIMIT_MEMLOCK, 0},
		{unix.RLIMIT_MSGQUEUE, 0},
	} {
		if err := lower(limit.resource, limit.most, limit.most); err != nil {
			return err
		}
	}
	// At the first limit comes SIGXCPU, which says what it was; a program that ignores it is killed at the second.
	if err := lower(unix.RLIMIT_CPU, s.Seconds, s.Seconds+1); err != nil {
		return err
	}
	if err := dropPrivileges(); err != nil {
		return fmt.Errorf("give up privileges: %w", err)
	}
	if s.Landlock {
		if err := restrictFiles(s.Folders, s.Scratch); err != nil {
			return fmt.Errorf("restrict files: %w", err)
		}
	}
	variables := []string{
		"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + s.Scratch, "TMPDIR=" + s.Scratch, "LANG=C.UTF-8", "TZ=UTC",
		"PYTHONDONTWRITEBYTECODE=1", "PYTHONNOUSERSITE=1", "PYTHONHASHSEED=0", "PYTHONUTF8=1",
		// One thread for each processor would be more than there may be.
		"OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1", "MALLOC_ARENA_MAX=2",
	}
	if err := restrictCalls(); err != nil {
		return fmt.Errorf("restrict system calls: %w", err)
	}
	return become(s.Command, variables, s.MemoryBytes)
}

// become starts the program in this process's place, with so much memory. It returns only if that fails.
func become(command, variables []string, memory uint64) error {
	path, err := unix.BytePtrFromString(command[0])
	if err != nil {
		return err
	}
	arguments, err := syscall.SlicePtrFromStrings(command)
	if err != nil {
		return err
	}
	environment, err := syscall.SlicePtrFromStrings(variables)
	if err != nil {
		return err
	}
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_AS, &now); err != nil {
		return err
	}
	memory = min(memory, now.Max)
	limit := unix.Rlimit{Cur: memory, Max: memory}
	// This process has more memory than that. So nothing is allocated in between: these are system calls and nothing else.
	_, _, errno := unix.RawSyscall6(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_AS, uintptr(unsafe.Pointer(&limit)), 0, 0, 0)
	if errno == 0 {
		_, _, errno = unix.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(path)), uintptr(unsafe.Pointer(&arguments[0])), uintptr(unsafe.Pointer(&environment[0])))
	}
	return fmt.Errorf("start %s: %w", command[0], errno)
}

// lower sets a limit whose hard bound cannot be raised again, unless a lower one is in force.
func lower(resource int, soft, hard uint64) error {
	var now syscall.Rlimit
	err := syscall.Getrlimit(resource, &now)
	if err == nil {
		hard = min(hard, now.Max)
		soft = min(soft, hard)
		err = syscall.Setrlimit(resource, &syscall.Rlimit{Cur: soft, Max: hard})
	}
	if err != nil {
		return fmt.Errorf("set limit %d to %d: %w", resource, soft, err)
	}
	return nil
}

// computedTooLong says whether it was the limit of processor time that ended a process. The system counts that by ticks,
// and what it reports exactly, which differ much on a busy machine: so the signal tells, and time only if that was ignored.
func computedTooLong(state *os.ProcessState, most time.Duration) bool {
	status, ok := state.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return false
	}
	killed := status.Signal() == syscall.SIGKILL && state.UserTime()+state.SystemTime() >= most
	return status.Signal() == syscall.SIGXCPU || killed
}

// dropPrivileges takes all capabilities from the thread, for good: the user may be root.
func dropPrivileges() error {
	const (
		noRoot       = 1 << 0 // root's programs get no capabilities
		noRootLocked = 1 << 1
	)
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var has [2]unix.CapUserData
	if err := unix.Capget(&header, &has[0]); err != nil {
		return err
	}
	if has[0].Effective&(1<<unix.CAP_SETPCAP) != 0 {
		if err := unix.Prctl(unix.PR_SET_SECUREBITS, noRoot|noRootLocked, 0, 0, 0); err != nil {
			return err
		}
		for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
			unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0) //nolint:errcheck // older systems know fewer
		}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	var none [2]unix.CapUserData
	return unix.Capset(&header, &none[0])
}
