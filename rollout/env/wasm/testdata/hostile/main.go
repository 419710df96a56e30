// Command hostile is an environment that does, when a tool is called, what the tool's name says.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"time"
	"unsafe"
)

type request struct {
	Op, Name, Arguments, Answer, Split, Habit string
	Index                                     uint64
}

func main() {
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var r request
		json.Unmarshal(line, &r)
		switch r.Op {
		case "reset":
			say(`{"messages":[{"role":"user","content":"Do no harm."}],"tools":[]}`)
		case "call":
			result, err := json.Marshal(act(r.Name, r.Arguments))
			if err == nil {
				say(`{"result":` + string(result) + `}`)
			}
		case "score":
			say(r.Answer)
		case "solve":
			if r.Habit == "" {
				say(`{"calls":[{"name":"echo","arguments":"{}"}],"answer":"right","habits":["haste","waste"]}`)
			} else {
				say(r.Habit)
			}
		}
	}
}

func say(line string) { os.Stdout.WriteString(line + "\n") }

var sink []byte

//go:wasmimport wasi_snapshot_preview1 path_open
//go:noescape
func pathOpen(fd int32, flags int32, path unsafe.Pointer, n uint32, open int32, rights, inherit uint64, fdFlags int32, opened unsafe.Pointer) uint32

//go:wasmimport wasi_snapshot_preview1 sock_send
//go:noescape
func sockSend(fd int32, data unsafe.Pointer, n uint32, flags int32, sent unsafe.Pointer) uint32

//go:wasmimport wasi_snapshot_preview1 random_get
//go:noescape
func randomGet(at unsafe.Pointer, n uint32) uint32

func act(name, arguments string) string {
	switch name {
	case "echo":
		return arguments
	case "loop":
		for {
		}
	case "wait":
		<-make(chan int)
	case "sleep":
		before := time.Now()
		time.Sleep(24 * time.Hour)
		return fmt.Sprint(time.Since(before) >= 24*time.Hour, before.UTC().Year())
	case "memory":
		for {
			sink = append(sink, make([]byte, 1<<20)...)
		}
	case "collect":
		for range 20 {
			sink = make([]byte, 1<<20)
		}
		runtime.GC()
		return "ok"
	case "recursion":
		return fmt.Sprint(recurse(0))
	case "output":
		chunk := strings.Repeat("x", 64<<10)
		for {
			os.Stdout.WriteString(chunk)
		}
	case "noise":
		chunk := strings.Repeat("noise ", 10<<10)
		for range 100 {
			os.Stderr.WriteString(chunk)
		}
		return "ok"
	case "lines":
		say(`{"result":"one"}`)
		say(`{"result":"two"}`)
		return "three"
	case "read":
		bufio.NewReader(os.Stdin).ReadBytes('\n')
	case "exit":
		fmt.Fprintln(os.Stderr, "that is enough")
		os.Exit(3)
	case "panic":
		panic("no way")
	case "files":
		_, read := os.ReadFile("/etc/passwd")
		write := os.WriteFile("hostile", []byte("x"), 0o666)
		_, list := os.ReadDir("/")
		path := []byte("/etc/passwd")
		var errno [8]uint32
		for fd := range errno {
			var opened uint32
			errno[fd] = pathOpen(int32(fd), 0, unsafe.Pointer(&path[0]), uint32(len(path)), 0, math.MaxUint64, math.MaxUint64, 0, unsafe.Pointer(&opened))
		}
		return fmt.Sprint(read != nil, write != nil, list != nil, errno, len(os.Args), len(os.Environ()))
	case "network":
		data := [2]uint32{0, 4}
		var errno [8]uint32
		for fd := range errno {
			var sent uint32
			errno[fd] = sockSend(int32(fd), unsafe.Pointer(&data), 1, 0, unsafe.Pointer(&sent))
		}
		return fmt.Sprint(errno)
	case "outside":
		return fmt.Sprint(randomGet(unsafe.Pointer(uintptr(0xfffffff0)), 1<<20))
	case "flood":
		b := make([]byte, 4<<20)
		for {
			randomGet(unsafe.Pointer(&b[0]), uint32(len(b)))
		}
	case "calls":
		for {
			time.Now()
		}
	case "random":
		return fmt.Sprint(rand.Uint64(), rand.Uint64(), time.Now().UnixNano(), order())
	case "raw":
		say(arguments)
		return "and more"
	}
	return "error: no such tool"
}

// order is that in which a map gives its keys, which is random.
func order() (keys []int) {
	m := map[int]bool{}
	for i := range 20 {
		m[i] = true
	}
	for k := range m {
		keys = append(keys, k)
	}
	return keys
}

//go:noinline
func recurse(n int) int {
	if n < 0 {
		return 0
	}
	return recurse(n+1) + 1
}
