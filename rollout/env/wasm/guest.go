package wasm

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/tetratelabs/wazero/api"

	"github.com/lightswarm/lightswarm/rollout/env/protocol"
	"github.com/lightswarm/lightswarm/rollout/env/wasm/meter"
)

const (
	// MaxAnswer bounds a module's answer, in bytes.
	MaxAnswer = protocol.MaxLine
	// maxDepth bounds calls inside one another, as package meter counts. The engine's own stack has room for it, unless
	// functions keep hundreds of values in each call, of which the meter knows nothing.
	maxDepth = 1 << 20
	// engineDepth is the engine's error where its stack ends first.
	engineDepth = "stack overflow"
	// hostCallSteps is what a call of a host function costs.
	hostCallSteps = 256
	// stepsAtOnce is how many steps a module gets before it asks for more: a few milliseconds' worth.
	stepsAtOnce = 4 << 20
	// bytesPerStep is how many bytes a host function moves for one step.
	bytesPerStep = 8
)

// epoch is where a module's clock starts.
var epoch = time.Date(2022, 1, 1, 0, 0, 0, 0, time.UTC)

// guest is one instance of a module and all that it can see. Its fields belong to the goroutine that runs the instance.
type guest struct {
	steps    int64
	requests <-chan []byte
	answer   func(line []byte, u Usage)
	closed   atomic.Bool // the one field that others write: the episode is over

	reserve int64 // steps that are left besides those in the module

	module     api.Module
	asked      bool
	reading    []byte // what is left of the request
	line       []byte // the answer so far
	complaints protocol.Complaints
	clock      int64 // nanoseconds since the epoch
	random     *rand.ChaCha8
}

func newGuest(steps int64, seed [32]byte, requests <-chan []byte, answer func([]byte, Usage)) *guest {
	return &guest{steps: steps, reserve: steps, requests: requests, answer: answer, random: rand.NewChaCha8(seed)}
}

// What ends an instance from inside a host function.
var (
	errClosed = errors.New("the episode was closed")
	errSteps  = errors.New("the steps are used up")
)

type exitStatus uint32

func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", uint32(s)) }

type guestKey struct{}

// run runs the instance until it ends, and says why that was too early; nil if its episode was closed.
func (g *guest) run(ctx context.Context, instantiate func(context.Context) (api.Module, error)) *Failure {
	ctx = context.WithValue(ctx, guestKey{}, g)
	var err error
	if g.module, err = instantiate(ctx); err != nil {
		return g.failure(err)
	}
	defer g.module.Close(ctx)
	start := g.module.ExportedFunction("_start")
	if start == nil || len(start.Definition().ParamTypes()) > 0 || len(start.Definition().ResultTypes()) > 0 {
		return &Failure{Reason: ReasonProtocol, Detail: "the module exports no function _start: build a command, not a library"}
	}
	if g.module.Memory() == nil || g.module.ExportedMemory("memory") == nil {
		return &Failure{Reason: ReasonProtocol, Detail: "the module exports no memory"}
	}
	_, err = start.Call(ctx)
	return g.failure(err)
}

// left is how many steps are left, below 0 if they are used up.
func (g *guest) left() int64 { return g.reserve + int64(g.global(meter.Steps).Get()) }

// refill gives the module steps from the reserve, if it has none.
func (g *guest) refill() {
	if g.closed.Load() {
		panic(errClosed)
	}
	if g.left() < 0 {
		panic(errSteps)
	}
	steps := g.global(meter.Steps)
	if have := int64(steps.Get()); have < 0 {
		add := min(g.reserve, stepsAtOnce-have)
		g.reserve -= add
		steps.Set(uint64(have + add))
	}
	// Compiled code never lets others of the process go first, nor its garbage be collected.
	runtime.Gosched()
}

// fill gives the module all its steps again.
func (g *guest) fill() {
	g.reserve = g.steps
	g.global(meter.Steps).Set(0)
}

func (g *guest) global(name string) api.MutableGlobal {
	return g.module.ExportedGlobal(name).(api.MutableGlobal)
}

// charge takes a host call's cost.
func (g *guest) charge(bytes uint32) {
	steps := g.global(meter.Steps)
	steps.Set(steps.Get() - hostCallSteps - uint64(bytes/bytesPerStep))
	if int64(steps.Get()) < 0 {
		g.refill()
	}
}

func (g *guest) memory() uint64 {
	if g.module == nil || g.module.Memory() == nil {
		return 0
	}
	return uint64(g.module.Memory().Size())
}

// failure says why an instance ended.
func (g *guest) failure(err error) *Failure {
	var own *Failure
	var status exitStatus
	switch {
	case errors.Is(err, errClosed):
		return nil
	case g.module == nil && err != nil:
		return &Failure{Reason: ReasonTrap, Detail: "it does not start: " + firstLine(err)}
	case errors.As(err, &own):
		return own
	case errors.Is(err, errSteps):
		return &Failure{Reason: ReasonSteps, Detail: fmt.Sprintf("it used up the %d steps that the manifest allows for a request: look for an endless loop, or raise steps", g.steps)}
	case err != nil && (uint32(g.global(meter.Depth).Get()) > maxDepth || firstLine(err) == engineDepth):
		return &Failure{Reason: ReasonDepth, Detail: "its calls are nested too deeply: look for a recursion without end"}
	case err == nil || errors.As(err, &status):
		return &Failure{Reason: ReasonExit, Detail: fmt.Sprintf("it ended with status %d before it had answered%s", status, g.circumstances())}
	}
	return &Failure{Reason: ReasonTrap, Detail: firstLine(err) + g.circumstances()}
}

// circumstances is what an author wants to know of a failure besides.
func (g *guest) circumstances() string {
	text := fmt.Sprintf("; it had %.1f MiB of memory", float64(g.memory())/(1<<20))
	if said := g.complaints.String(); said != "" {
		text += "; the end of its standard error is: " + said
	}
	return text
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return strings.TrimSuffix(line, " (recovered by wazero)")
}

// read gives the module what is left of its request, or waits for the next one.
func (g *guest) read() []byte {
	if len(g.reading) > 0 {
		return g.reading
	}
	if g.asked {
		panic(&Failure{Reason: ReasonProtocol, Detail: "it reads on before it has answered: write one line with a line end, and flush it"})
	}
	request, ok := <-g.requests
	if !ok {
		panic(errClosed)
	}
	g.asked = true
	g.reading = append(request, '\n')
	return g.reading
}

// write takes what the module writes to its standard output.
func (g *guest) write(b []byte) {
	for _, c := range b {
		switch {
		case !g.asked:
			panic(&Failure{Reason: ReasonProtocol, Detail: fmt.Sprintf("it writes %q to standard output when nothing is asked: write one line for each request, and messages to standard error", protocol.Clip(b))})
		case c != '\n':
			if g.line = append(g.line, c); len(g.line) > MaxAnswer {
				panic(&Failure{Reason: ReasonOutput, Detail: fmt.Sprintf("its answer has more than %d bytes", MaxAnswer)})
			}
		case !utf8.Valid(g.line):
			panic(&Failure{Reason: ReasonAnswer, Detail: "its answer is not UTF-8"})
		default:
			used := Usage{Steps: uint64(g.steps - g.left()), MemoryBytes: g.memory()}
			line := g.line
			g.asked, g.reading, g.line = false, nil, nil
			g.fill()
			g.answer(line, used)
		}
	}
}

// complain takes what the module writes to its standard error.
func (g *guest) complain(b []byte) { g.complaints.Write(b) } //nolint:errcheck // it never fails
