package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/lightswarm/lightswarm/cmd/lightswarm/live"
	"github.com/lightswarm/lightswarm/node/api"
	"github.com/lightswarm/lightswarm/node/config"
)

// client returns a client of the node that runs on a data folder. The caller closes it.
func client(folder string) (*api.Client, error) {
	if err := checkFolder(folder); err != nil {
		return nil, err
	}
	f := config.View(folder)
	address, err := f.ReadAddress()
	if err != nil {
		return nil, noNode(folder, err)
	}
	token, err := f.ReadToken()
	if err != nil {
		return nil, noNode(folder, err)
	}
	return api.NewClient(address, token), nil
}

// noNode says what to do when the error is that no node runs on a data folder.
func noNode(folder string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return &exitError{exitNoNode, fmt.Errorf("no node runs on %s: start one with lightswarm join or lightswarm learn, or name the folder of one that runs with --data", folder)}
	}
	return err
}

func (p *program) status() *cobra.Command {
	c := &cobra.Command{
		Use:     "status",
		Short:   "Show what the node on the data folder does",
		Example: "  lightswarm status --data ./mynet",
		Args:    takes(0, 0),
	}
	data := p.dataFlag(c)
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		folder, err := data()
		if err != nil {
			return usage(err)
		}
		node, err := client(folder)
		if err != nil {
			return err
		}
		defer node.Close()
		s, err := node.Status(cmd.Context())
		if err != nil {
			return noNode(folder, err)
		}
		return p.print(s, func(w io.Writer) { statusText(w, &s, time.Now()) })
	}
	return c
}

// statusText is a node at a glance.
func statusText(w io.Writer, s *api.Status, now time.Time) {
	row := func(name, format string, values ...any) {
		fmt.Fprintf(w, "%-9s %s\n", name, fmt.Sprintf(format, values...))
	}
	row("node", "%s, %s for %s", s.Peer, strings.Join(s.Roles, " and "), now.Sub(s.Started).Round(time.Second))
	row("network", "%s (%s), environments %s", s.Network.ID, s.Network.Name, strings.Join(s.Network.Environments, ", "))
	row("now", "%s", s.Phase)
	if waits := waitsFor(s, now); waits != "" && waits != s.Phase {
		row("learner", "%s", waits)
	}
	if s.Rollout != nil {
		row("rollout", "%s for %s, %d groups and evaluation blocks at work", s.Rollout.Activity, now.Sub(s.Rollout.Since).Round(time.Second), s.Rollout.Running)
	}
	if r := s.Rollout; r != nil && r.Agent != nil && r.Agent.Lightning != "" {
		row("agent", "runners of Agent Lightning at %s play %d rollouts, %d wait; %d attempts since the start",
			r.Agent.Lightning, r.Agent.Running, r.Agent.Waiting, r.Agent.Started)
	} else if r != nil && r.Agent != nil {
		row("agent", "%s, %d processes of it now, %d since the start", r.Agent.Command, r.Agent.Running, r.Agent.Started)
	}
	row("members", "%d connected", s.Connected)
	if s.Head != nil {
		row("release", "version %d of %s, %d groups trained%s", s.Head.Version, age(now, s.Head.Created), s.Head.GroupsTrained, final(s.Head))
	}
	if s.Policy != nil && s.Head != nil && s.Policy.Version != s.Head.Version {
		row("policy", "version %d is in use", s.Policy.Version)
	}
	if r := s.Rollout; r != nil {
		row("rollouts", "%d in %d groups and %d evaluation blocks, %d tokens sampled", r.Total.Rollouts, r.Total.Groups, r.Total.Blocks, r.Total.CompletionTokens)
	}
	if l := s.Learner; l != nil {
		row("accepted", "%d rollouts since the start", l.RolloutsAccepted)
		if refused := live.Counts(l.RolloutsRefused); refused != "" {
			row("refused", "%s", refused)
		}
		for _, a := range l.Alerts {
			row("alert", "since version %d: %s: %s", a.Since, a.Message, a.Advice)
		}
		for _, purpose := range purposes(l.Evaluations) {
			e := newest(l.Evaluations, purpose)
			row("held-out", "%.3f %s (95%%: %.3f-%.3f), version %d, %d tasks", e.Success, strings.TrimPrefix(purpose, "evaluate-"), e.Low, e.High, e.Version, e.Tasks)
		}
	}
	row("store", "%s of %s", size(s.Store.BlockBytes), size(s.Store.MaxBlockBytes))
	row("join", "%s", s.Join)
}

// size is a number of bytes in the unit that suits it, rounded to a decimal.
func size(bytes int64) string {
	value, unit := float64(bytes), "B"
	for _, larger := range []string{"KiB", "MiB", "GiB", "TiB"} {
		if value < 1024 {
			break
		}
		value, unit = value/1024, larger
	}
	return strings.TrimSuffix(strconv.FormatFloat(value, 'f', 1, 64), ".0") + unit
}

func age(now, then time.Time) string { return now.Sub(then).Round(time.Second).String() + " ago" }

func final(r *api.Release) string {
	if r.Final {
		return ", final"
	}
	return ""
}

// purposes are those of the complete evaluations.
func purposes(list []api.Evaluation) []string {
	found := map[string]bool{}
	for _, e := range list {
		if e.Complete {
			found[e.Purpose] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// newest is the newest complete evaluation of a purpose.
func newest(list []api.Evaluation, purpose string) (found api.Evaluation) {
	for _, e := range list {
		if e.Complete && e.Purpose == purpose {
			found = e
		}
	}
	return found
}
