// Command agent does what its task says, and prints what came of it.
package main

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

func main() {
	task, err := io.ReadAll(os.Stdin)
	if err != nil {
		panic(err)
	}
	what, rest, _ := strings.Cut(string(task), " ")
	fmt.Print(acts[what](rest))
}

var acts = map[string]func(string) any{
	"say":   func(text string) any { return text },
	"flood": func(n string) any { return strings.Repeat("y", number(n)) },
	"fail":  fail,
	"panic": func(string) any { panic("a bug") },
	"loop": func(string) any {
		for {
		}
	},
	"gush": func(string) any {
		for {
			fmt.Print(strings.Repeat("y", 1<<20))
			fmt.Fprint(os.Stderr, strings.Repeat("z", 1<<20))
		}
	},
	"open": func(string) any {
		for {
			conn().Close()
		}
	},
	"hang":        func(string) any { var none chan any; go tick(); return <-none },
	"read":        func(string) any { n, err := conn().Read(make([]byte, 1)); return fmt.Sprint(n, err) },
	"memory":      memory,
	"describe":    describe,
	"terminal":    terminal,
	"ask":         ask,
	"connections": connections,
	"files":       files,
	"dial":        dial,
	"wild":        wild,
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return n
}

func fail(status string) any {
	fmt.Fprintln(os.Stderr, "it went wrong")
	os.Exit(number(status))
	return nil
}

// tick keeps the runtime from seeing that nothing will ever happen.
func tick() {
	for range time.Tick(time.Second) {
	}
}

var kept [][]byte

func memory(string) any {
	for {
		block := make([]byte, 8<<20)
		for i := 0; i < len(block); i += 4 << 10 { // in each page, so that all of it is there
			block[i] = 1
		}
		kept = append(kept, block)
	}
}

func describe(string) any {
	var names []string
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		names = append(names, name)
	}
	return fmt.Sprintf("%v %s %v %t", os.Args, os.Getenv("TASK"), names, time.Now().Year() > 2020)
}

// terminal says whether standard output is taken for one, which some programs write differently to.
func terminal(string) any {
	info, err := os.Stdout.Stat()
	return fmt.Sprint(err, info.Mode()&os.ModeCharDevice != 0)
}

// listener is the one that is open when a module starts.
var listener = sync.OnceValue(func() net.Listener {
	l, err := net.FileListener(os.NewFile(3, "listener"))
	if err != nil {
		panic(err)
	}
	return l
})

func conn() net.Conn {
	c, err := listener().Accept()
	if err != nil {
		panic(err)
	}
	return c
}

// ask calls the model so many times at once, while it computes.
func ask(times string) any {
	said := make([]string, number(times))
	var calls sync.WaitGroup
	for i := range said {
		calls.Go(func() { said[i] = call() })
	}
	<-time.After(time.Millisecond)
	calls.Wait()
	return strings.Join(said, " ")
}

func call() string {
	base, err := url.Parse(os.Getenv("OPENAI_BASE_URL"))
	if err != nil {
		panic(err)
	}
	const body = `{"model":"any","messages":[{"role":"user","content":"what?"}]}`
	c := conn()
	defer c.Close()
	fmt.Fprintf(c, "POST %s/chat/completions HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"+
		"Content-Length: %d\r\nConnection: close\r\n\r\n%s", base.Path, base.Host, os.Getenv("OPENAI_API_KEY"), len(body), body)
	answer, err := io.ReadAll(c)
	if err != nil {
		panic(err)
	}
	_, text, _ := strings.Cut(string(answer), `"content":"`)
	text, _, _ = strings.Cut(text, `"`)
	return text
}

// connections opens more than there may be: the last one waits until another is closed. One after the other there may be any
// number.
func connections(text string) any {
	most := number(text)
	for range 10 * most {
		conn().Close()
	}
	open := make([]net.Conn, most)
	for i := range open {
		open[i] = conn()
	}
	another := make(chan net.Conn)
	go func() { another <- conn() }()
	select {
	case <-another:
		return "too many"
	case <-time.After(20 * time.Millisecond):
	}
	open[0].Close()
	(<-another).Close()
	return "as many as there may be"
}

// files says which ways lead to any.
func files(path string) any {
	var ways []string
	try := func(way string, err error) {
		if err == nil {
			ways = append(ways, way)
		}
	}
	_, err := os.ReadFile(path)
	try("read", err)
	_, err = os.ReadDir("/")
	try("list", err)
	try("write", os.WriteFile("file", []byte("text"), 0o600))
	try("make", os.Mkdir("folder", 0o700))
	_, err = os.Stat(".")
	try("look", err)
	return fmt.Sprint(ways)
}

// dial says whether an address is reached.
func dial(address string) any {
	_, err := net.DialTimeout("tcp", address, time.Second)
	return err == nil
}
