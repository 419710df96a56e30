//go:build unix

package module

import (
	"context"
	"encoding/binary"
	"net/netip"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
	"golang.org/x/sys/unix"
)

// listenerFile is the module's descriptor of the listener.
const listenerFile = 3

// file is an open descriptor of the module.
type file struct {
	descriptor int // this process's; the listener has none
	listener   bool
	nonblock   bool // the module does not want to wait in a call
}

// host is what a module has open. A module has one thread, so nothing here is concurrent.
type host struct {
	endpoint netip.AddrPort
	files    map[uint32]*file
}

func newHost(endpoint netip.AddrPort) *host {
	return &host{endpoint, map[uint32]*file{
		0: {descriptor: 0}, 1: {descriptor: 1}, 2: {descriptor: 2},
		listenerFile: {descriptor: -1, listener: true, nonblock: true},
	}}
}

// connections is how many the module has open.
func (h *host) connections() (n int) {
	for number := range h.files {
		if number > listenerFile {
			n++
		}
	}
	return n
}

// functions are those of WASI that take a descriptor or a path, each with its parameters: i for i32, I for i64. All are
// here, those too that a module gets nothing from, so that the engine's own descriptors and files are out of its reach.
var functions = map[string]struct {
	params string
	call   func(*host, call) errno
}{
	"fd_close":            {"i", (*host).close},
	"fd_fdstat_get":       {"ii", (*host).stat},
	"fd_fdstat_set_flags": {"ii", (*host).setFlags},
	"fd_filestat_get":     {"ii", (*host).fileStat},
	"fd_read":             {"iiii", (*host).read},
	"fd_write":            {"iiii", (*host).write},
	"poll_oneoff":         {"iiii", (*host).poll},
	"sock_accept":         {"iii", (*host).accept},
	"sock_recv":           {"iiiiii", (*host).receive},
	"sock_send":           {"iiiii", (*host).send},
	"sock_shutdown":       {"ii", (*host).shutdown},

	"fd_datasync": {"i", open(success)},
	"fd_sync":     {"i", open(success)},
	"fd_seek":     {"iIii", open(notSeekable)},
	"fd_tell":     {"ii", open(notSeekable)},

	"fd_prestat_get":      {"ii", always(badFile)}, // by which a module learns that it has no folder
	"fd_prestat_dir_name": {"iii", always(badFile)},

	"fd_advise":               {"iIIi", always(notCapable)},
	"fd_allocate":             {"iII", always(notCapable)},
	"fd_fdstat_set_rights":    {"iII", always(notCapable)},
	"fd_filestat_set_size":    {"iI", always(notCapable)},
	"fd_filestat_set_times":   {"iIIi", always(notCapable)},
	"fd_pread":                {"iiiIi", always(notCapable)},
	"fd_pwrite":               {"iiiIi", always(notCapable)},
	"fd_readdir":              {"iiiIi", always(notCapable)},
	"fd_renumber":             {"ii", always(notCapable)},
	"path_create_directory":   {"iii", always(notCapable)},
	"path_filestat_get":       {"iiiii", always(notCapable)},
	"path_filestat_set_times": {"iiiiIIi", always(notCapable)},
	"path_link":               {"iiiiiii", always(notCapable)},
	"path_open":               {"iiiiiIIii", always(notCapable)},
	"path_readlink":           {"iiiiii", always(notCapable)},
	"path_remove_directory":   {"iii", always(notCapable)},
	"path_rename":             {"iiiiii", always(notCapable)},
	"path_symlink":            {"iiiii", always(notCapable)},
	"path_unlink_file":        {"iii", always(notCapable)},
}

func always(e errno) func(*host, call) errno { return func(*host, call) errno { return e } }

// open is the answer about a descriptor that is open.
func open(answer errno) func(*host, call) errno {
	return func(h *host, c call) errno {
		if _, e := c.file(h); e != success {
			return e
		}
		return answer
	}
}

// instantiate offers WASI to the modules of a runtime. What is about neither descriptors nor paths is the engine's own:
// arguments, variables, clocks, random bytes and the end.
func (h *host) instantiate(ctx context.Context, r wazero.Runtime) error {
	b := r.NewHostModuleBuilder(wasi_snapshot_preview1.ModuleName)
	wasi_snapshot_preview1.NewFunctionExporter().ExportFunctions(b)
	for name, f := range functions {
		params := make([]api.ValueType, len(f.params))
		for i, kind := range f.params {
			params[i] = map[rune]api.ValueType{'i': api.ValueTypeI32, 'I': api.ValueTypeI64}[kind]
		}
		b.NewFunctionBuilder().WithGoModuleFunction(api.GoModuleFunc(func(_ context.Context, m api.Module, stack []uint64) {
			result := fault
			if m.Memory() != nil {
				result = f.call(h, call{m.Memory(), stack})
			}
			stack[0] = uint64(result)
		}), params, []api.ValueType{api.ValueTypeI32}).Export(name)
	}
	_, err := b.Instantiate(ctx)
	return err
}

// call is one call of a function: its arguments, and the memory that they point into.
type call struct {
	memory api.Memory
	stack  []uint64
}

func (c call) u32(i int) uint32 { return uint32(c.stack[i]) }

// file is the one that the first argument names.
func (c call) file(h *host) (*file, errno) {
	f, ok := h.files[c.u32(0)]
	if !ok {
		return nil, badFile
	}
	return f, success
}

// put32 writes a result to where an argument points.
func (c call) put32(argument int, v uint32) errno {
	if !c.memory.WriteUint32Le(c.u32(argument), v) {
		return fault
	}
	return success
}

// vectors calls move with each buffer of a list that two arguments name, until it moves less than a buffer has. What has been
// moved is written to where a third one points. Only if it is nothing does an error count.
func (c call) vectors(list, total int, move func([]byte) (int, errno)) errno {
	at, sum := c.u32(list), uint32(0)
	for i := range c.u32(list + 1) {
		entry, ok := c.memory.Read(at+i*8, 8)
		if !ok {
			return fault
		}
		buffer, ok := c.memory.Read(binary.LittleEndian.Uint32(entry), binary.LittleEndian.Uint32(entry[4:]))
		if !ok {
			return fault
		}
		if len(buffer) == 0 {
			continue
		}
		n, e := move(buffer)
		sum += uint32(n)
		if e != success && sum == 0 {
			return e
		}
		if n < len(buffer) {
			break
		}
	}
	return c.put32(total, sum)
}

// The bits of descriptors that modules know.
const (
	flagNonblock          = 4
	typeUnknown           = 0 // such as a pipe; a character device would be taken for a terminal
	typeStream            = 6
	rightRead, rightWrite = 1 << 1, 1 << 6
	rightPoll             = 1 << 27
	rightShutdown         = 1 << 28
	rightAccept           = 1 << 29
)

func (h *host) stat(c call) errno {
	f, e := c.file(h)
	if e != success {
		return e
	}
	b, ok := c.memory.Read(c.u32(1), 24)
	if !ok {
		return fault
	}
	clear(b)
	b[0] = f.kind()
	if f.nonblock {
		b[2] = flagNonblock
	}
	rights := uint64(rightRead | rightWrite | rightPoll)
	switch {
	case f.listener:
		rights = rightAccept | rightPoll
	case c.u32(0) > listenerFile:
		rights |= rightShutdown
	}
	binary.LittleEndian.PutUint64(b[8:], rights)
	return success
}

// kind is the file's type: sockets are streams.
func (f *file) kind() byte {
	if f.listener || f.descriptor > 2 {
		return typeStream
	}
	return typeUnknown
}

func (h *host) fileStat(c call) errno {
	f, e := c.file(h)
	if e != success {
		return e
	}
	b, ok := c.memory.Read(c.u32(1), 64)
	if !ok {
		return fault
	}
	clear(b)
	b[16] = f.kind()
	return success
}

func (h *host) setFlags(c call) errno {
	f, e := c.file(h)
	if e == success {
		f.nonblock = c.u32(1)&flagNonblock != 0
	}
	return e
}

// close forgets a descriptor. Standard streams stay open in this process, which may have to say why it ends.
func (h *host) close(c call) errno {
	f, e := c.file(h)
	if e != success {
		return e
	}
	delete(h.files, c.u32(0))
	if f.descriptor > 2 {
		unix.Close(f.descriptor) // what was not sent is lost, as the module wants it
	}
	return success
}
