package program

import "golang.org/x/sys/unix"

// processor is whose system calls are meant.
const processor = unix.AUDIT_ARCH_AARCH64

// callsOfProcessor are calls that other processors name otherwise.
var callsOfProcessor = []uint32{unix.SYS_FSTATAT}

func conditionalOfProcessor() map[uint32]code { return nil }
