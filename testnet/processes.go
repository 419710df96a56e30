package testnet

import (
	"bufio"
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lightswarm/lightswarm/node"
	"github.com/lightswarm/lightswarm/node/api"
	"github.com/lightswarm/lightswarm/node/config"
	"github.com/lightswarm/lightswarm/rollout/env/pack"
)

const (
	// startPatience is how long a process may take until its node listens.
	startPatience = 30 * time.Second
	// maxAnnounceBytes bounds the line that a node's process announces itself with.
	maxAnnounceBytes = 64 << 10
)

// announced is the part of what a node's command prints that a testnet needs.
type announced struct {
	Network   string   `json:"network"`
	Peer      string   `json:"peer"`
	Addresses []string `json:"addresses"`
	API       string   `json:"api"`
}

// process is a node in a process of its own.
type process struct {
	command *exec.Cmd
	client  *api.Client
	ended   chan struct{}
	err     error // how the process ended; read once ended is closed
	announced
}

var _ running = (*process)(nil)

// startProcesses runs the network as processes with data folders in the run folder. ctx bounds the start, life the
// processes.
func startProcesses(ctx, life context.Context, o Options, log *slog.Logger) (_ *network, err error) {
	founding, err := o.founding()
	if err != nil {
		return nil, err
	}
	environ, err := variables(o.nodeSettings())
	if err != nil {
		return nil, err
	}
	n := &network{groupSize: int(founding.Rollout.GroupSize)}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.stop(context.WithoutCancel(ctx)))
		}
	}()
	var bootstrap []string
	for i := range o.Nodes + 1 {
		folder := filepath.Join(o.Dir, "nodes", strconv.Itoa(i))
		if err := plantIdentity(folder, o, i); err != nil {
			return nil, err
		}
		role, arguments := config.RoleRollout, append([]string{"join", n.id}, bootstrap...)
		if i == 0 {
			if err := createNetwork(ctx, o, &founding, folder, environ); err != nil {
				return nil, err
			}
			role, arguments = config.RoleLearner, []string{"learn"}
		}
		p, err := startProcess(ctx, life, o.Binary, folder, append(arguments, "--data", folder, "--json", "--end-with-input"), environ)
		if err != nil {
			return nil, fmt.Errorf("start node %d: %w", i, err)
		}
		log.Info("a node listens", "node", i, "peer", p.Peer, "pid", p.command.Process.Pid, "data", folder)
		n.members = append(n.members, member{p.Peer, role, p})
		if i == 0 {
			n.id = p.Network
			for _, address := range p.Addresses {
				bootstrap = append(bootstrap, "--bootstrap", address)
			}
		}
	}
	return n, nil
}

// variables are the environment of the processes: this one's, with the nodes' settings in the place of its own. Listen
// addresses are in the data folders.
func variables(c config.Config) ([]string, error) {
	loaded, err := config.Merge(c, config.Sources{})
	if err != nil {
		return nil, err
	}
	const prefix = "LIGHTSWARM_"
	settings := loaded.Settings()
	name := func(key string) string { return prefix + strings.ToUpper(strings.ReplaceAll(key, ".", "_")) }
	environ := slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return slices.ContainsFunc(settings, func(s config.Setting) bool { return strings.HasPrefix(variable, name(s.Key)+"=") })
	})
	for _, s := range settings {
		if !slices.Contains([]string{"network", "roles", "p2p.bootstrap", "p2p.listen"}, s.Key) {
			environ = append(environ, name(s.Key)+"="+s.Value)
		}
	}
	return environ, nil
}

// plantIdentity makes a data folder with the identity that the seed gives the node.
func plantIdentity(folder string, o Options, i int) error {
	key, err := config.EncodeIdentity(o.key(i))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return fmt.Errorf("make the data folder of node %d: %w", i, err)
	}
	var settings strings.Builder
	settings.WriteString("[p2p]\nlisten = [\n")
	for _, address := range o.Settings.P2P.Listen {
		fmt.Fprintf(&settings, "  %q,\n", address)
	}
	settings.WriteString("]\n")
	for path, data := range map[string][]byte{
		config.View(folder).IdentityFile(): key, config.View(folder).ConfigFile(): []byte(settings.String()),
	} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			return fmt.Errorf("make the data folder of node %d: %w", i, err)
		}
	}
	return nil
}

// createNetwork founds the network in the learner's data folder.
func createNetwork(ctx context.Context, o Options, f *node.Founding, folder string, environ []string) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	environment := o.Environment
	if o.Package != nil {
		environment = filepath.Join(o.Dir, "environment.lsenv")
		if err := os.WriteFile(environment, pack.File{Package: o.Package}.Encode(), 0o666); err != nil {
			return fmt.Errorf("write the environment's package: %w", err)
		}
	}
	number := func(n uint32) string { return strconv.FormatUint(uint64(n), 10) }
	c := exec.CommandContext(ctx, o.Binary, "network", "create", "--name", f.Name, "--env", environment, "--policy", o.Policy,
		"--group-size", number(f.Rollout.GroupSize), "--groups-per-version", number(f.Rollout.GroupsPerVersion),
		"--evaluation-tasks", number(f.Evaluation.Tasks), "--data", folder,
		"--nonce", hex.EncodeToString(f.Nonce), "--created", f.Created.Format(time.RFC3339), "--json")
	c.Env = environ
	var said bytes.Buffer
	c.Stderr = &said
	if err := c.Run(); err != nil {
		return fmt.Errorf("found the network: %w: %s", err, strings.TrimSpace(said.String()))
	}
	return nil
}

// startProcess starts a node's command and waits until its node listens. The process is killed when life ends. When this
// process is killed, the node stops because its standard input ends.
func startProcess(ctx, life context.Context, binary, folder string, arguments, environ []string) (*process, error) {
	log, err := os.OpenFile(filepath.Join(folder, "log.txt"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p := &process{command: exec.CommandContext(life, binary, arguments...), ended: make(chan struct{})}
	p.command.Env, p.command.Stderr = environ, log
	out, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	// Nothing is ever written. The pipe is open in no other child, and Wait closes it.
	if _, err := p.command.StdinPipe(); err != nil {
		return nil, err
	}
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	line := make(chan []byte, 1)
	go func() {
		defer close(p.ended)
		lines := bufio.NewReaderSize(io.LimitReader(out, maxAnnounceBytes), maxAnnounceBytes)
		first, _ := lines.ReadBytes('\n') // a part of a line fails to parse
		line <- first
		io.Copy(io.Discard, out) //nolint:errcheck // how the process ends says more
		p.err = p.command.Wait()
	}()
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	select {
	case first := <-line:
		if err := json.Unmarshal(first, &p.announced); err != nil {
			return nil, errors.Join(fmt.Errorf("the node did not start; see %s", log.Name()), p.kill())
		}
	case <-ctx.Done():
		return nil, errors.Join(fmt.Errorf("the node did not start in time; see %s: %w", log.Name(), context.Cause(ctx)), p.kill())
	}
	token, err := config.View(folder).ReadToken()
	if err != nil {
		return nil, errors.Join(err, p.kill())
	}
	p.client = api.NewClient(p.API, token)
	return p, nil
}

// kill ends a process that is of no use.
func (p *process) kill() error {
	err := p.command.Process.Kill()
	<-p.ended
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

func (p *process) events(ctx context.Context, visit func(api.Event)) error {
	return p.client.Events(ctx, func(e api.Event) error {
		visit(e)
		return nil
	})
}

func (p *process) block(ctx context.Context, cid string) ([]byte, error) {
	return p.client.Block(ctx, cid)
}

func (p *process) status(ctx context.Context) (api.Status, error) { return p.client.Status(ctx) }

func (p *process) stop(ctx context.Context) error {
	defer p.client.Close()
	select {
	case <-p.ended:
		return p.err
	default:
	}
	if err := p.client.Shutdown(ctx); err != nil {
		return errors.Join(err, p.kill())
	}
	select {
	case <-p.ended:
		return p.err
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("it did not stop in time: %w", context.Cause(ctx)), p.kill())
	}
}
