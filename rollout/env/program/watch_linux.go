package program

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
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

// room is how many files and folders a process has in its scratch folder and how much room they take, with those that it
// has removed and still has open. It stops to count at what is too many.
func room(pid int, scratch string) (files int, bytes int64) {
	filepath.WalkDir(scratch, func(_ string, d fs.DirEntry, err error) error { //nolint:errcheck // what is gone takes no room
		if err != nil {
			return nil //nolint:nilerr // as above
		}
		if info, err := d.Info(); err == nil {
			bytes += allocated(info)
		}
		if files++; files > MaxScratchFiles {
			return fs.SkipAll
		}
		return nil
	})
	open, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		return files, bytes
	}
	for _, name := range open {
		if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() && info.Sys().(*syscall.Stat_t).Nlink == 0 {
			bytes += allocated(info)
		}
	}
	return files, bytes
}

// allocated is what a file takes on the disk.
func allocated(info fs.FileInfo) int64 {
	const block = 512
	return info.Sys().(*syscall.Stat_t).Blocks * block
}
