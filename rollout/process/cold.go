//go:build unix

package process

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"sync"
)

// cold starts the program anew for each rollout.
type cold struct {
	command Command
	scratch string
	limit   int // of an answer, in bytes
}

// ready implements starter.
func (*cold) ready(context.Context) error { return nil }

// prepare implements starter.
func (c *cold) prepare(context.Context) (*room, error) { return newRoom(c.scratch, c.limit) }

// start implements starter.
func (c *cold) start(_ context.Context, r *room, environ []string) (child, error) {
	return launchIn(r, c.command.Args, environ)
}

func (*cold) close() {}

// program is a process that this one started, in a session of its own.
type program struct {
	cmd   *exec.Cmd
	ended chan ended // has room for the one end

	marks []string // what, in their environment, shows that processes are this one's

	mu   sync.Mutex
	gone bool // guarded by mu; the process is not there any more, its number may be another's
}

// ended is how a process ended.
type ended struct {
	status status
	err    error
}

// launchIn starts a program in its room. More files become its descriptors from 3 on.
func launchIn(r *room, args, environ []string, more ...*os.File) (*program, error) {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Env, cmd.ExtraFiles = r.work, environ, more
	cmd.Stdin, cmd.Stdout, cmd.Stderr = r.ends[0], r.ends[1], r.ends[2]
	return launch(cmd)
}

// launch starts a process. Its thread waits for it: on Linux the process is killed when the thread that started it ends.
func launch(cmd *exec.Cmd) (*program, error) {
	p := &program{cmd: cmd, ended: make(chan ended, 1), marks: marksOf(cmd.Env)}
	cmd.SysProcAttr = attributes()
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.ended <- p.await()
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// await waits for the process, then kills what is left of its session, before its number can be another's.
func (p *program) await() ended {
	waiting := awaitExit(p.cmd.Process.Pid)
	p.mu.Lock()
	defer p.mu.Unlock()
	signalGroup(p.cmd.Process.Pid, kill)
	sweep(p.marks)
	err := p.cmd.Wait()
	p.gone = true
	var exit *exec.ExitError
	switch {
	case err == nil:
		return ended{status: status{ok: true, words: "exit status 0"}}
	case errors.As(err, &exit):
		return ended{status: status{words: exit.Error()}}
	}
	return ended{err: errors.Join(waiting, err)}
}

func (p *program) wait() (status, error) {
	e := <-p.ended
	return e.status, e.err
}

func (p *program) ask()  { p.signal(ask) }
func (p *program) kill() { p.signal(kill) }

func (p *program) signal(s signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.gone {
		signalGroup(p.cmd.Process.Pid, s)
	}
}
