package wasm

import (
	"context"
	"encoding/binary"
	"math"
	"slices"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/lightswarm/lightswarm/rollout/env/wasm/meter"
)

// wasiModule is what modules import. This is our own, so that what a module sees does not change with the engine: it has
// all functions of preview 1 by name, and those that would reach a file, a socket or another process say that there is
// none.
const wasiModule = "wasi_snapshot_preview1"

// Errors of WASI.
const (
	success    = 0
	badFile    = 8
	invalid    = 28
	noSystem   = 52
	notSeek    = 70
	notCapable = 76
)

const (
	characterDevice = 2
	clockRealtime   = 0
	clockMonotonic  = 1
	// tick is by how much each reading moves the clock, in nanoseconds.
	tick = 1e6
)

// arguments of one call of a host function.
type arguments struct {
	*guest
	stack []uint64
}

func (a arguments) u32(i int) uint32 { return uint32(a.stack[i]) }

// bytes is a part of the module's memory. What is outside ends the instance, as an access of the module's own would.
func (a arguments) bytes(at, n uint32) []byte {
	b, ok := a.module.Memory().Read(at, n)
	if !ok {
		panic(&Failure{Reason: ReasonTrap, Detail: "it passes a host function what is outside its memory"})
	}
	return b
}

func (a arguments) put32(at, v uint32) { binary.LittleEndian.PutUint32(a.bytes(at, 4), v) }
func (a arguments) put64(at uint32, v uint64) {
	binary.LittleEndian.PutUint64(a.bytes(at, 8), v)
}

// hostFunction is a function of WASI: its signature (i for i32, I for i64) and what it does. All return an error number
// but those without a result.
type hostFunction struct {
	params string
	call   func(a arguments) uint32
}

func always(errno uint32) func(arguments) uint32 { return func(arguments) uint32 { return errno } }

// standard is a call about a standard stream; other descriptors do not exist.
func standard(call func(a arguments) uint32) func(arguments) uint32 {
	return func(a arguments) uint32 {
		if a.u32(0) > 2 {
			return badFile
		}
		return call(a)
	}
}

// noEntries says that there are no arguments, or no variables.
func noEntries(a arguments) uint32 {
	a.put32(a.u32(0), 0)
	a.put32(a.u32(1), 0)
	return success
}

var wasi = map[string]hostFunction{
	"args_get":            {"ii", always(success)},
	"args_sizes_get":      {"ii", noEntries},
	"environ_get":         {"ii", always(success)},
	"environ_sizes_get":   {"ii", noEntries},
	"clock_res_get":       {"ii", clockResolution},
	"clock_time_get":      {"iIi", clockTime},
	"random_get":          {"ii", randomBytes},
	"poll_oneoff":         {"iiii", poll},
	"sched_yield":         {"", always(success)},
	"fd_read":             {"iiii", fdRead},
	"fd_write":            {"iiii", fdWrite},
	"fd_fdstat_get":       {"ii", standard(fdStat)},
	"fd_filestat_get":     {"ii", standard(fileStat)},
	"fd_close":            {"i", standard(always(success))},
	"fd_fdstat_set_flags": {"ii", standard(always(success))},
	"fd_seek":             {"iIii", standard(always(notSeek))},
	"fd_tell":             {"ii", standard(always(notSeek))},
	"fd_datasync":         {"i", standard(always(success))},
	"fd_sync":             {"i", standard(always(success))},

	"fd_prestat_get":      {"ii", always(badFile)},
	"fd_prestat_dir_name": {"iii", always(badFile)},
	"fd_readdir":          {"iiiIi", always(badFile)},
	"fd_renumber":         {"ii", always(badFile)},

	"fd_advise":               {"iIIi", always(notCapable)},
	"fd_allocate":             {"iII", always(notCapable)},
	"fd_fdstat_set_rights":    {"iII", always(notCapable)},
	"fd_filestat_set_size":    {"iI", always(notCapable)},
	"fd_filestat_set_times":   {"iIIi", always(notCapable)},
	"fd_pread":                {"iiiIi", always(notCapable)},
	"fd_pwrite":               {"iiiIi", always(notCapable)},
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
	"sock_accept":             {"iii", always(notCapable)},
	"sock_recv":               {"iiiiii", always(notCapable)},
	"sock_send":               {"iiiii", always(notCapable)},
	"sock_shutdown":           {"ii", always(notCapable)},
	"proc_raise":              {"i", always(noSystem)},
}

// instantiateWASI offers the functions to the modules of a runtime.
func instantiateWASI(ctx context.Context, runtime wazero.Runtime) error {
	b := runtime.NewHostModuleBuilder(wasiModule)
	for name, f := range wasi {
		params := make([]api.ValueType, len(f.params))
		for i, c := range f.params {
			params[i] = map[rune]api.ValueType{'i': api.ValueTypeI32, 'I': api.ValueTypeI64}[c]
		}
		call := api.GoModuleFunc(func(ctx context.Context, m api.Module, stack []uint64) {
			a := enter(ctx, m, stack)
			if name != "fd_read" { // which is also how a module asks for steps
				a.charge(0)
			}
			stack[0] = uint64(f.call(a))
		})
		b.NewFunctionBuilder().WithGoModuleFunction(call, params, []api.ValueType{api.ValueTypeI32}).Export(name)
	}
	exit := api.GoModuleFunc(func(ctx context.Context, m api.Module, stack []uint64) {
		panic(exitStatus(enter(ctx, m, stack).u32(0)))
	})
	b.NewFunctionBuilder().WithGoModuleFunction(exit, []api.ValueType{api.ValueTypeI32}, nil).Export("proc_exit")
	_, err := b.Instantiate(ctx)
	return err
}

// enter begins a call of a host function.
func enter(ctx context.Context, m api.Module, stack []uint64) arguments {
	g := ctx.Value(guestKey{}).(*guest)
	if g.module == nil { // it is called while the module is being instantiated
		g.module = m
	}
	if m.Memory() == nil {
		panic(&Failure{Reason: ReasonProtocol, Detail: "the module exports no memory"})
	}
	return arguments{g, stack}
}

func clockResolution(a arguments) uint32 {
	if a.u32(0) > clockMonotonic {
		return invalid
	}
	a.put64(a.u32(1), tick)
	return success
}

func clockTime(a arguments) uint32 {
	now := a.clock
	switch a.u32(0) {
	case clockRealtime:
		now += epoch.UnixNano()
	case clockMonotonic:
	default:
		return invalid
	}
	a.put64(a.u32(2), uint64(now))
	a.clock = later(a.clock, tick)
	return success
}

// later moves a clock, which stays below its end.
func later(clock, by int64) int64 { return min(clock, math.MaxInt64/4) + min(by, math.MaxInt64/4) }

func randomBytes(a arguments) uint32 {
	a.charge(a.u32(1))
	a.random.Read(a.bytes(a.u32(0), a.u32(1))) //nolint:errcheck // it never fails
	return success
}

// vector calls do with each buffer of a list, until it returns less than the buffer has, and returns the sum.
func (a arguments) vector(at, n uint32, do func([]byte) int) (sum uint32) {
	for i := range n {
		entry := a.bytes(at+i*8, 8)
		buffer := a.bytes(binary.LittleEndian.Uint32(entry), binary.LittleEndian.Uint32(entry[4:]))
		a.charge(uint32(len(buffer)))
		done := do(buffer)
		sum += uint32(done)
		if done < len(buffer) {
			break
		}
	}
	return sum
}

func fdRead(a arguments) uint32 {
	if a.u32(0) == meter.Yield {
		a.refill()
		return success
	}
	a.charge(0)
	if a.u32(0) != 0 {
		return badFile
	}
	// No more than one request: the next one may not be there yet.
	request := a.read()
	n := a.vector(a.u32(1), a.u32(2), func(buffer []byte) int {
		n := copy(buffer, request)
		request = request[n:]
		return n
	})
	a.reading = request
	a.put32(a.u32(3), n)
	return success
}

func fdWrite(a arguments) uint32 {
	to := a.write
	switch a.u32(0) {
	case 1:
	case 2:
		to = a.complain
	default:
		return badFile
	}
	n := a.vector(a.u32(1), a.u32(2), func(buffer []byte) int {
		to(buffer)
		return len(buffer)
	})
	a.put32(a.u32(3), n)
	return success
}

func fdStat(a arguments) uint32 {
	b := a.bytes(a.u32(1), 24)
	clear(b)
	b[0] = characterDevice
	const readAndWrite = 1<<1 | 1<<6
	binary.LittleEndian.PutUint64(b[8:], readAndWrite)
	return success
}

func fileStat(a arguments) uint32 {
	b := a.bytes(a.u32(1), 64)
	clear(b)
	b[16] = characterDevice
	return success
}

// poll answers at once: sleeping moves the clock to the end of the shortest sleep, and standard streams are ready.
func poll(a arguments) uint32 {
	const subscription, event, maxSubscriptions = 48, 32, 1024
	n := a.u32(2)
	if n == 0 || n > maxSubscriptions {
		return invalid
	}
	a.charge(n * (subscription + event))
	in := append([]byte(nil), a.bytes(a.u32(0), n*subscription)...)
	// A stream is ready at the instant before any sleep ends.
	const streamReady = math.MinInt64
	times := make([]int64, n)
	for i := range times {
		times[i] = streamReady
		if s := in[i*subscription:][:subscription]; s[8] == 0 {
			times[i] = a.wakeTime(s)
		}
	}
	first := slices.Min(times)
	a.clock = max(a.clock, min(first, math.MaxInt64/4))
	events := uint32(0)
	for i, t := range times {
		if t > first {
			continue
		}
		s := in[i*subscription:][:subscription]
		b := a.bytes(a.u32(1)+events*event, event)
		clear(b)
		copy(b, s[:8])
		b[10] = s[8]
		events++
	}
	a.put32(a.u32(3), events)
	return success
}

// wakeTime is when a sleep ends, in the module's time.
func (a arguments) wakeTime(subscription []byte) int64 {
	timeout := int64(min(binary.LittleEndian.Uint64(subscription[24:]), math.MaxInt64))
	if absolute := binary.LittleEndian.Uint16(subscription[40:])&1 != 0; !absolute {
		return later(a.clock, timeout)
	}
	if binary.LittleEndian.Uint32(subscription[16:]) == clockRealtime {
		timeout -= epoch.UnixNano()
	}
	return max(timeout, 0)
}
