package program

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// threads is how many threads a process has, 0 if it has ended.
func threads(pid int) int {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The name, in brackets, may have anything in it; the number of threads is the 18th field behind it.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const number = 17
	if len(fields) <= number {
		return 0
	}
	n, err := strconv.Atoi(string(fields[number]))
	if err != nil {
		return 0
	}
	return n
}

const (
	// stopTime is how long a process may take to stop before it is looked at all the same: a thread that waits for a disk
	// stops after that.
	stopTime  = 100 * time.Millisecond
	stopEvery = 200 * time.Microsecond
)

// room is how many files and folders a process has in its scratch folder and how much room they take, with those that it
// has removed and still has open or in its memory. It stops to count at what is too many. An error says what in the folder
// cannot be looked at. The process stands still meanwhile: it could carry its files past whoever counts them.
func room(process *os.Process, scratch string) (files int, bytes int64, err error) {
	if process.Signal(unix.SIGSTOP) != nil {
		return 0, 0, nil // it has ended
	}
	defer process.Signal(unix.SIGCONT) //nolint:errcheck // as above
	tries := time.NewTicker(stopEvery)
	defer tries.Stop()
	for until := time.Now().Add(stopTime); !stopped(process.Pid) && time.Now().Before(until); {
		<-tries.C
	}
	files, bytes, err = inFolder(scratch)
	if err != nil || files > MaxScratchFiles {
		return files, bytes, err
	}
	return files, bytes + removed(process.Pid, scratch), nil
}

// stopped says whether all threads of a child have stopped, or it has ended.
func stopped(pid int) bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, pid, &info, unix.WSTOPPED|unix.WNOHANG|unix.WNOWAIT, nil)
	return err != nil || info.Signo != 0
}

// inFolder counts what is in a folder.
func inFolder(scratch string) (files int, bytes int64, err error) {
	err = filepath.WalkDir(scratch, func(_ string, d fs.DirEntry, err error) error {
		var info fs.FileInfo
		if err == nil {
			info, err = d.Info()
		}
		switch {
		case errors.Is(err, fs.ErrNotExist): // of a process that has not stopped
			return nil
		case err != nil:
			return err
		}
		bytes += allocated(info)
		if files++; files > MaxScratchFiles {
			return fs.SkipAll
		}
		return nil
	})
	return files, bytes, err
}

// removed is the room that a process's removed files take. How large one is that it has in its memory alone is known to
// the system only, so that it is taken to be as large as it can be.
func removed(pid int, scratch string) (size int64) {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	if err != nil {
		return 0
	}
	for _, task := range tasks {
		memory, err := os.ReadFile(task + "/maps")
		if err != nil || len(memory) == 0 {
			continue // a thread that has ended; all others have the same memory and the same open files
		}
		seen := map[uint64]bool{}
		open, err := os.ReadDir(task + "/fd")
		if err != nil {
			return 0 // it has ended
		}
		for _, entry := range open {
			info, err := os.Stat(filepath.Join(task, "fd", entry.Name()))
			if err != nil || !info.Mode().IsRegular() {
				continue
			}
			if s := info.Sys().(*syscall.Stat_t); s.Nlink == 0 && !seen[s.Ino] {
				seen[s.Ino] = true
				size += allocated(info)
			}
		}
		for _, inode := range removedInMemory(string(memory), scratch) {
			if !seen[inode] {
				seen[inode] = true
				size += MaxScratchBytes
			}
		}
		return size
	}
	return 0
}

// removedInMemory are the numbers of the removed files of a folder in a process's memory, of which the system's list is
// given.
func removedInMemory(memory, folder string) (inodes []uint64) {
	for line := range strings.Lines(memory) {
		at := strings.IndexByte(line, '/')
		if at < 0 || !strings.HasPrefix(line[at:], folder+"/") || !strings.HasSuffix(line, " (deleted)\n") {
			continue
		}
		// Before the path are the range, the rights, the offset, the device and the file's number.
		if fields := strings.Fields(line[:at]); len(fields) == 5 {
			if inode, err := strconv.ParseUint(fields[4], 10, 64); err == nil {
				inodes = append(inodes, inode)
			}
		}
	}
	return inodes
}

// allocated is what a file takes on the disk.
func allocated(info fs.FileInfo) int64 {
	const block = 512
	return info.Sys().(*syscall.Stat_t).Blocks * block
}
