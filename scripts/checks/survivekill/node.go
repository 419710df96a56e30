package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/lightswarm/lightswarm/node/api"
	"github.com/lightswarm/lightswarm/node/config"
)

// startPatience is how long a node may take until it listens.
const startPatience = 30 * time.Second

// node is a process of the program.
type node struct {
	data    string
	command *exec.Cmd
	client  *api.Client
	// What the node said of itself when it listened.
	Peer      string
	Addresses []string
	API       string
}

// environment has the settings of every node: nothing beyond this machine, and what ends training.
func (s *swarm) environment() []string {
	var environ []string
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "LIGHTSWARM_") {
			environ = append(environ, variable)
		}
	}
	environ = append(environ,
		"LIGHTSWARM_P2P_MDNS=false", "LIGHTSWARM_P2P_DHT=false", "LIGHTSWARM_P2P_NAT_PORT_MAP=false",
		"LIGHTSWARM_LEARNER_PATIENCE=5s", "LIGHTSWARM_ROLLOUT_THREADS=1", "LIGHTSWARM_LEARNER_WORKERS=1")
	return append(environ, s.settings...)
}

// start runs a node's command on a data folder until it listens.
func (s *swarm) start(data string, arguments ...string) (*node, error) {
	arguments = append(arguments, "--data", data, "--json", "--end-with-input")
	if arguments[0] == "join" {
		arguments = append(arguments, "--listen", "/ip4/127.0.0.1/tcp/0")
	}
	n := &node{data: data, command: exec.Command(s.binary, arguments...)}
	log, err := os.OpenFile(filepath.Join(s.work, filepath.Base(data)+".log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	n.command.Env, n.command.Stderr = s.environment(), log
	out, err := n.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	// Its end, when this check is killed, stops the node.
	if _, err := n.command.StdinPipe(); err != nil {
		return nil, err
	}
	if err := n.command.Start(); err != nil {
		return nil, err
	}
	line := make(chan []byte, 1)
	go func() {
		first, _ := bufio.NewReader(out).ReadBytes('\n') // a part of a line fails to parse
		line <- first
	}()
	select {
	case first := <-line:
		if err := json.Unmarshal(first, n); err != nil {
			return nil, errors.Join(fmt.Errorf("%s did not start; see %s", data, log.Name()), n.kill())
		}
	case <-time.After(startPatience):
		return nil, errors.Join(fmt.Errorf("%s did not start in time; see %s", data, log.Name()), n.kill())
	}
	token, err := config.View(data).ReadToken()
	if err != nil {
		return nil, errors.Join(err, n.kill())
	}
	n.client = api.NewClient(n.API, token)
	return n, nil
}

// kill ends the process at once, as a power cut would.
func (n *node) kill() error {
	if err := n.command.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	var exit *exec.ExitError
	if err := n.command.Wait(); err != nil && !errors.As(err, &exit) {
		return err
	}
	return nil
}

// errEnough ends a stream of events.
var errEnough = errors.New("enough")

// watch visits the node's events until visit says that it is enough.
func (n *node) watch(ctx context.Context, visit func(api.Event) (enough bool)) error {
	err := n.client.Events(ctx, func(e api.Event) error {
		if visit(e) {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// ledger returns the whole ledger.
func (n *node) ledger(ctx context.Context) (all []api.LedgerEntry, err error) {
	const page = 500
	for {
		entries, err := n.client.Ledger(ctx, uint64(len(all)), page)
		if err != nil {
			return nil, err
		}
		all = append(all, entries...)
		if len(entries) < page {
			return all, nil
		}
	}
}
