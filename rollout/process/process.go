package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/rollout/agent"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/gateway"
)

// Command is how an agent's program is started.
type Command struct {
	// Args are the program and its arguments. A program without a slash is looked up in PATH. A program with one, and
	// any argument, that names a file in Dir becomes that file's absolute path. One whose name ends in .wasm is a WebAssembly
	// module in Dir.
	Args []string
	// Dir holds the agent's files; empty means that it has none. The program is not run there: each rollout has a
	// fresh, empty working folder.
	Dir string
	// Environ are more variables, as "NAME=value". They override those that the package sets, except those of the
	// rollout's session and TASK.
	Environ []string
	// Preload are modules that are imported before a rollout begins. With any, Args are a script and its arguments, and
	// before them an interpreter: Node.js (20.12 or later) if that is its name, else Python (3.9 or later). Empty starts the
	// program anew for each rollout.
	Preload []string
}

// Options are what an agent is made of. Gateway, Command.Args and Roles are required.
type Options struct {
	// Gateway is what the program reaches the policy through. It stays the caller's, and outlives the agent.
	Gateway *gateway.Gateway
	Command Command
	// Roles are the environment's agents (EnvironmentManifest.Agents). Calls that name none are the first one's.
	Roles []string
	// Modules is a command that runs WebAssembly modules. It takes the arguments "compile", the folder of compiled modules and
	// the module; or "run", the same, and the module's arguments, as package module says. Empty means that there is none.
	Modules []string
	// Concurrent bounds how many programs run at once, others wait for their turn; 0 means no bound.
	Concurrent int
	// Grace is how long a program may take to end after it was asked to, before it is killed; 0 means 2 seconds.
	Grace time.Duration
	// MaxOutput bounds an answer, in bytes; 0 means 64 KiB.
	MaxOutput int
	// Scratch is the folder below which programs run; empty means the system's folder for temporary files.
	Scratch string
	// Log gets what the programs complain about, and the processes that preload modules; nil discards it.
	Log *slog.Logger
}

// errClosed is the end of all runs that Close finds, and of those that come later.
var errClosed = errors.New("the agent was closed")

// Agent is a program that plays episodes, one process for each. It implements agent.Agent, and is safe for concurrent
// use.
type Agent struct {
	options Options
	scratch string // the agent's own
	start   starter
	// programs counts those of all runs.
	programs programs
	turns    chan struct{} // has room for as many as may run at once; nil for any number

	ctx     context.Context // ends with Close
	cancel  context.CancelCauseFunc
	mu      sync.Mutex
	closed  bool           // guarded by mu
	running sync.WaitGroup // runs; none begins once closed
}

// New checks that the command can be started, and makes an agent of it. With modules to preload, their import begins.
// The caller closes the agent.
func New(o Options) (*Agent, error) {
	if o.Gateway == nil || len(o.Roles) == 0 {
		panic("process: incomplete Options")
	}
	if o.Grace <= 0 {
		o.Grace = 2 * time.Second
	}
	if o.MaxOutput <= 0 {
		o.MaxOutput = 64 << 10
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if errSystem != nil { // before the command is looked up by a Unix system's rules
		return nil, errSystem
	}
	command, err := resolve(o.Command, os.Getenv("PATH"))
	if err == nil && isModule(command.Args[0]) && len(o.Modules) == 0 {
		err = errors.New("WebAssembly modules cannot be run here")
	}
	if err != nil {
		return nil, fmt.Errorf("agent's command: %w", err)
	}
	scratch, err := os.MkdirTemp(o.Scratch, "agent-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for agents: %w", err)
	}
	if scratch, err = filepath.Abs(scratch); err != nil { // programs run elsewhere
		return nil, fmt.Errorf("make a folder for agents: %w", err)
	}
	a := &Agent{options: o, scratch: scratch}
	a.ctx, a.cancel = context.WithCancelCause(context.Background())
	if o.Concurrent > 0 {
		a.turns = make(chan struct{}, o.Concurrent)
	}
	if a.start, err = newStarter(a.ctx, command, scratch, o); err != nil {
		a.cancel(err)
		return nil, errors.Join(fmt.Errorf("start agents: %w", err), os.RemoveAll(scratch))
	}
	return a, nil
}

// Ready waits until the modules to preload are imported, or the agent's WebAssembly module is compiled; without any it
// returns at once. An error says why they are not, or that ctx has ended. Rollouts do not need it: they wait themselves, but
// each one then fails for the same reason.
func (a *Agent) Ready(ctx context.Context) error { return a.start.ready(ctx) }

// Run implements agent.Agent: it starts the program, waits for its end, and says how that was. The package comment
// says which end is which.
func (a *Agent) Run(ctx context.Context, llm agent.LLM, e env.Episode) (agent.Result, error) {
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return agent.Result{}, errClosed
	}
	a.running.Add(1)
	a.mu.Unlock()
	defer a.running.Done()

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(a.ctx, func() { cancel(context.Cause(a.ctx)) })()
	if a.turns != nil {
		select {
		case a.turns <- struct{}{}:
			defer func() { <-a.turns }()
		case <-ctx.Done():
			return agent.Result{}, context.Cause(ctx)
		}
	}
	result, err := a.play(ctx, llm, task(e))
	if errors.Is(err, errUnborn) && ctx.Err() == nil { // nothing has happened yet
		result, err = a.play(ctx, llm, task(e))
	}
	return result, err
}

// task is what an episode asks: the text of its last user message.
func task(e env.Episode) (text string) {
	for _, m := range e.Messages() {
		if m.Role == chat.User {
			text = m.Content
		}
	}
	return text
}

// Close gives up the rollouts that run, waits for them, and leaves no process, goroutine or folder behind. It is called
// once.
func (a *Agent) Close() error {
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.cancel(errClosed)
	a.running.Wait()
	a.start.close()
	if err := RemoveAll(a.scratch); err != nil {
		return fmt.Errorf("remove the folder of agents: %w", err)
	}
	return nil
}
