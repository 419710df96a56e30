package program

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Rights to files. Those of a file are read, and read and write; those of a folder hold below it.
const (
	readFile  = unix.LANDLOCK_ACCESS_FS_READ_FILE
	writeFile = readFile | unix.LANDLOCK_ACCESS_FS_WRITE_FILE
	readTree  = readFile | unix.LANDLOCK_ACCESS_FS_READ_DIR | unix.LANDLOCK_ACCESS_FS_EXECUTE
	writeTree = writeFile | unix.LANDLOCK_ACCESS_FS_READ_DIR | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_REFER |
		unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SYM
)

// systemFiles are those besides folders that programs need.
var systemFiles = map[string]uint64{
	"/dev/null": writeFile, "/dev/zero": readFile, "/dev/random": readFile, "/dev/urandom": readFile,
	"/etc/ld.so.cache": readFile, "/etc/localtime": readFile,
}

// landlockVersion is that of Landlock's interface, 0 if there is none.
func landlockVersion() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// handled are the rights that a version of Landlock knows, and which nobody has any more but by a rule.
func handled(version int) unix.LandlockRulesetAttr {
	files := uint64(unix.LANDLOCK_ACCESS_FS_MAKE_SYM<<1 - 1)
	r := unix.LandlockRulesetAttr{}
	if version >= 2 {
		files |= unix.LANDLOCK_ACCESS_FS_REFER
	}
	if version >= 3 {
		files |= unix.LANDLOCK_ACCESS_FS_TRUNCATE
	}
	if version >= 4 {
		r.Handled_access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	if version >= 5 {
		files |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if version >= 6 {
		r.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	r.Handled_access_fs = files
	return r
}

// restrictFiles leaves the thread the system's files and folders to read, and scratch to write in. It has no new
// privileges.
func restrictFiles(folders []string, scratch string) error {
	version := landlockVersion()
	if version == 0 {
		return errors.New("this system has no Landlock")
	}
	all := handled(version)
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&all)), unsafe.Sizeof(all), 0)
	if errno != 0 {
		return fmt.Errorf("make a rule set: %w", errno)
	}
	defer unix.Close(int(fd))
	allow := func(path string, rights uint64) error {
		file, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("open %s: %w", path, err)
		}
		defer unix.Close(file)
		rule := unix.LandlockPathBeneathAttr{Allowed_access: rights & all.Handled_access_fs, Parent_fd: int32(file)}
		_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, fd, unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
		if errno != 0 {
			return fmt.Errorf("allow %s: %w", path, errno)
		}
		return nil
	}
	for path, rights := range systemFiles {
		if err := allow(path, rights); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
	for _, path := range systemFolders {
		if err := allow(path, readTree); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
	for _, path := range folders {
		if err := allow(path, readTree); err != nil {
			return err
		}
	}
	if err := allow(scratch, writeTree); err != nil {
		return err
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return fmt.Errorf("apply the rules: %w", errno)
	}
	return nil
}
