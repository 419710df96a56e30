package testnet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/lightswarm/lightswarm/node/api"
	"github.com/lightswarm/lightswarm/node/config"
	"github.com/lightswarm/lightswarm/policy/tokenizer"
	"github.com/lightswarm/lightswarm/testnet/report"
	"github.com/lightswarm/lightswarm/wire/bundle"
)

const (
	// showInterval is how often a running network is shown.
	showInterval = 200 * time.Millisecond
	// readPatience is how long the end of a run waits for the bundles that the report quotes.
	readPatience = 10 * time.Second
	// stopPatience is how long all nodes together may take to stop.
	stopPatience = 20 * time.Second
)

// Why a run ended before its network was done.
var (
	errTimeout = errors.New("the time is over")
	errEnded   = errors.New("a node ended")
)

// Result is how a run went.
type Result struct {
	Report report.Report
	// Reached says that as many evaluations in a row as Settings.Learner.Hold, the newest among them, reached the target.
	Reached bool
	// Interrupted says that the caller ended the run, TimedOut that its timeout did.
	Interrupted, TimedOut bool
}

// Run runs a network until its chain is final and measured, ctx ends or the timeout does, and writes the run folder.
// show is called now and then and may be nil. A run that was cut short is no error: its report shows how far it came.
func Run(ctx context.Context, o Options, show func(Progress)) (*Result, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if show == nil {
		show = func(Progress) {}
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the run folder: %w", err)
	}
	out, err := os.Create(filepath.Join(o.Dir, "log.txt"))
	if err != nil {
		return nil, fmt.Errorf("make the run's log: %w", err)
	}
	r := &run{Options: o, show: show, log: slog.New(slog.NewTextHandler(out, nil)), started: time.Now()}
	result, err := r.run(ctx)
	return result, errors.Join(err, out.Close())
}

// run is a run under way.
type run struct {
	Options
	show    func(Progress)
	log     *slog.Logger
	started time.Time

	network   *network
	collector *Collector
	tokenizer *tokenizer.Tokenizer
	examples  []report.Example
	// processes counts those of the agent's program, failed the rollouts that ended in an error or took too long.
	processes uint64
	failed    map[string]uint64
}

// observed is an event and the node that it came from.
type observed struct {
	node  string
	event api.Event
}

func (r *run) run(ctx context.Context) (*Result, error) {
	snapshot, err := r.base()
	if err != nil {
		return nil, err
	}
	r.tokenizer = snapshot.Tokenizer
	// The nodes end by being stopped, not with ctx, so that the report can still ask them.
	nodes, kill := context.WithCancel(context.WithoutCancel(ctx))
	defer kill()
	start := startLocal
	if r.Processes {
		start = startProcesses
	}
	if r.network, err = start(ctx, nodes, r.Options, r.log); err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("the network did not start: %w", context.Cause(ctx))
		}
		return nil, err
	}
	r.collector = NewCollector(r.started, r.network.groupSize, r.Settings.Learner.Target)

	limited, cancel := ctx, context.CancelFunc(func() {})
	if r.Timeout > 0 {
		limited, cancel = context.WithTimeoutCause(ctx, r.Timeout, errTimeout)
	}
	defer cancel()
	watched := r.watch(limited)
	if watched == nil || errors.Is(watched, errTimeout) || ctx.Err() != nil {
		r.quote(context.WithoutCancel(ctx), r.newest())
	}
	r.count(context.WithoutCancel(ctx))
	ended := time.Now()
	stopping, stopped := context.WithTimeoutCause(context.WithoutCancel(ctx), stopPatience, errTimeout)
	defer stopped()
	r.log.Info("stopping the nodes")
	if err := r.network.stop(stopping); err != nil {
		return nil, fmt.Errorf("a node failed; the run folder %s has its log: %w", r.Dir, err)
	}
	result := &Result{
		Reached: r.collector.Reached(r.Settings.Learner.Hold) && (watched == nil || errors.Is(watched, errTimeout)), Interrupted: ctx.Err() != nil,
		TimedOut: errors.Is(watched, errTimeout),
	}
	r.report(&result.Report, ended, r.end(ctx, watched))
	if err := report.Write(r.Dir, &result.Report); err != nil {
		return nil, err
	}
	if errors.Is(watched, errEnded) {
		return nil, fmt.Errorf("%w before the network was done; the run folder %s has its log", errEnded, r.Dir)
	}
	return result, nil
}

// watch collects events until the network is done (nil), ctx ends (its cause) or a node does.
func (r *run) watch(ctx context.Context) error {
	watching, stop := context.WithCancelCause(ctx)
	events := make(chan observed)
	var readers sync.WaitGroup
	for _, m := range r.network.members {
		readers.Go(func() {
			err := m.node.events(watching, func(e api.Event) {
				if m.role != config.RoleLearner {
					e.Phase = nil // The learner's is shown.
				}
				select {
				case events <- observed{m.peer, e}:
				case <-watching.Done():
				}
			})
			if watching.Err() == nil {
				r.log.Error("a node ended", "peer", m.peer, "role", m.role, "error", err)
				stop(errEnded)
			}
		})
	}
	defer readers.Wait()
	defer stop(nil)
	ticker := time.NewTicker(showInterval)
	defer ticker.Stop()
	quoted := false
	for {
		select {
		case o := <-events:
			r.collector.Add(o.node, o.event)
			if o.event.Problem != nil {
				r.log.Warn(o.event.Problem.Message, "peer", o.node)
			}
			if o.event.Evaluation == nil && o.event.Phase == nil {
				continue
			}
			if list := r.collector.Evaluations(); !quoted && len(list) > 0 {
				// At once: nobody keeps old bundles for ever.
				quoted = true
				r.quote(ctx, list[0].Version)
			}
			if r.collector.Done() {
				r.show(r.collector.Progress(time.Now(), len(r.network.members)))
				return nil
			}
		case <-ticker.C:
			r.show(r.collector.Progress(time.Now(), len(r.network.members)))
		case <-watching.Done():
			return context.Cause(watching)
		}
	}
}

// end is why the run ended, by what watch returned.
func (r *run) end(ctx context.Context, watched error) report.End {
	steps := uint64(r.Settings.Learner.Steps)
	switch {
	case watched == nil && steps > 0 && r.collector.head.Version >= steps:
		return report.EndSteps
	case watched == nil:
		return report.EndTarget
	case errors.Is(watched, errTimeout):
		return report.EndTimeout
	case ctx.Err() != nil:
		return report.EndInterrupt
	}
	return report.EndFailure
}

// newest is the newest version that was measured.
func (r *run) newest() uint64 {
	list := r.collector.Evaluations()
	if len(list) == 0 {
		return 0
	}
	return list[len(list)-1].Version
}

// quote reads a version's held-out rollouts for the report. The report does without what cannot be had.
func (r *run) quote(ctx context.Context, version uint64) {
	ctx, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	list, err := heldOut(ctx, r.collector.Bundles(version), r.Examples, r.tokenizer, r.network.members[0].node.block)
	if err != nil {
		r.log.Warn("some evaluation bundles could not be read", "version", version, "error", err)
	}
	r.examples = append(r.examples, list...)
}

// count asks the nodes how many processes of the agent's program they started, and which of their rollouts failed.
func (r *run) count(ctx context.Context) {
	r.failed = map[string]uint64{}
	ctx, cancel := context.WithTimeout(ctx, readPatience)
	defer cancel()
	for _, m := range r.network.members {
		s, err := m.node.status(ctx)
		switch {
		case err != nil:
			r.log.Warn("a node does not say what became of its rollouts", "peer", m.peer, "error", err)
		case s.Rollout != nil:
			if s.Rollout.Agent != nil {
				r.processes += s.Rollout.Agent.Started
			}
			for _, kind := range []bundle.OutcomeKind{bundle.OutcomeAgentError, bundle.OutcomeEnvError, bundle.OutcomeTimeout} {
				if n := s.Rollout.Total.Outcomes[kind.String()]; n > 0 {
					r.failed[kind.String()] += n
				}
			}
		}
	}
}

// report fills in the run's report.
func (r *run) report(out *report.Report, ended time.Time, why report.End) {
	*out = report.Report{
		End:    why,
		Schema: report.Schema, Version: r.Version, Command: r.Command, Seed: r.Seed,
		Network: r.network.id, Environment: r.environmentName(), Examples: r.examples,
		Agent: strings.Join(r.Settings.Rollout.Agent.Command, " "), AgentProcesses: r.processes, RolloutsFailed: r.failed,
	}
	for _, m := range r.network.members {
		out.Peers = append(out.Peers, report.Peer{ID: m.peer, Role: string(m.role)})
	}
	r.collector.Fill(out, ended)
}
