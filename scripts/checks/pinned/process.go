// Package pinned runs a check's own program as child processes, each on one core of the machine (Linux only).
package pinned

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Process is a child that talks in lines of JSON. One goroutine uses it.
type Process struct {
	name  string
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan []byte
	once  sync.Once
}

// Start runs this program on one core with the flags --role, --work and --patience, the time that ctx leaves, and more
// arguments. The caller kills it.
func Start(ctx context.Context, role string, core int, work string, more ...string) (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	arguments := []string{"-c", strconv.Itoa(core), self, "--role", role, "--work", work}
	if deadline, ok := ctx.Deadline(); ok {
		arguments = append(arguments, "--patience", time.Until(deadline).String())
	}
	arguments = append(arguments, more...)
	p := &Process{name: role, cmd: exec.Command("taskset", arguments...), lines: make(chan []byte)} //nolint:gosec // our own program
	p.cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	p.cmd.Stderr = os.Stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	p.in = in
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the %s on core %d: %w", role, core, err)
	}
	go func() {
		defer close(p.lines)
		lines := bufio.NewReader(out)
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return
			}
			p.lines <- line
		}
	}()
	return p, nil
}

// Tell gives the child a line to read.
func (p *Process) Tell(order any) error { return json.NewEncoder(p.in).Encode(order) }

// Read waits for the child's next line.
func (p *Process) Read(ctx context.Context, into any) error {
	select {
	case line, ok := <-p.lines:
		if !ok {
			return fmt.Errorf("the process of the %s ended", p.name)
		}
		return json.Unmarshal(line, into)
	case <-ctx.Done():
		return fmt.Errorf("waiting for the %s: %w", p.name, context.Cause(ctx))
	}
}

// Kill ends the child at once, as a power cut would.
func (p *Process) Kill() {
	p.once.Do(func() {
		p.cmd.Process.Kill() //nolint:errcheck // it may have ended
		for range p.lines {  // until it is gone
		}
		p.cmd.Wait() //nolint:errcheck // killed, which is what was wanted
	})
}

// End tells the child that nothing more comes, and waits until it has ended.
func (p *Process) End() (err error) {
	p.once.Do(func() {
		err = p.in.Close()
		for range p.lines { // until it is gone
		}
		err = errors.Join(err, p.cmd.Wait())
	})
	return err
}

// CPU is the processor time that the child has used.
func (p *Process) CPU() (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	// After the name in parentheses: state is field 3, user and system time are 14 and 15, in hundredths of a second.
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, errors.New("/proc/PID/stat is too short")
	}
	var ticks int64
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil
}

// Memory is the child's resident memory in bytes, now and at its peak.
func (p *Process) Memory() (now, peak int64, err error) {
	path := fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid)
	if now, err = kilobytes(path, "VmRSS"); err != nil {
		return 0, 0, err
	}
	peak, err = kilobytes(path, "VmHWM")
	return now, peak, err
}

func kilobytes(path, name string) (int64, error) {
	text, err := procField(path, name)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(strings.TrimSuffix(text, " kB"), 10, 64)
	return n << 10, err
}

// procField is the value of one line of a file under /proc.
func procField(path, name string) (string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	for line := range strings.SplitSeq(string(content), "\n") {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value), nil
		}
	}
	return "", fmt.Errorf("%s has no %s", path, name)
}

// Cores are the numbers of the processors that this program may use, such as 0-3,6.
func Cores() (cores []int, err error) {
	list, err := procField("/proc/self/status", "Cpus_allowed_list")
	if err != nil {
		return nil, err
	}
	for part := range strings.SplitSeq(list, ",") {
		low, high, isRange := strings.Cut(part, "-")
		first, err := strconv.Atoi(low)
		if err != nil {
			return nil, err
		}
		last := first
		if isRange {
			if last, err = strconv.Atoi(high); err != nil {
				return nil, err
			}
		}
		for core := first; core <= last; core++ {
			cores = append(cores, core)
		}
	}
	return cores, nil
}

// Orders visits what the parent asks of this process, until there is no more.
func Orders[Order any](visit func(Order) (reply any, err error)) error {
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var o Order
		if err := in.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		reply, err := visit(o)
		if err != nil {
			return err
		}
		if err := out.Encode(reply); err != nil {
			return err
		}
	}
}
