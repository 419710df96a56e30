package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf16"

	"github.com/spf13/cobra"

	"github.com/lightswarm/lightswarm/rollout/env/protocol"
)

// program is one run of the program: where it writes and what is common to all commands.
type program struct {
	out io.Writer
	err *os.File
	// json is the flag --json.
	json bool
	// started says that arguments and flags were understood and a command runs.
	started bool
}

// run runs the command that the arguments name and returns the exit code.
func (p *program) run(arguments []string) int {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	defer p.onSignal(cancel)()
	root := p.root()
	root.SetArgs(arguments)
	err := root.ExecuteContext(ctx)
	if err != nil && !p.started {
		err = usage(err)
	}
	if err != nil && err.Error() != "" {
		fmt.Fprintln(p.err, "lightswarm:", protocol.Harmless(err.Error()))
		if exitCode(err) == exitUsage {
			fmt.Fprintln(p.err, "See lightswarm help, or --help after a command.")
		}
	}
	return exitCode(err)
}

// onSignal makes the first interrupt end the context, so that everything stops in order, and leaves a second one to the
// system, which ends the process. The returned function undoes it.
func (p *program) onSignal(cancel context.CancelCauseFunc) (undo func()) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		select {
		case <-signals:
			signal.Stop(signals)
			cancel(errInterrupted)
		case <-done:
		}
	}()
	return func() {
		signal.Stop(signals)
		close(done)
	}
}

// root is the command tree.
func (p *program) root() *cobra.Command {
	c := &cobra.Command{
		Use:   "lightswarm",
		Short: "Train AI agents with reinforcement learning on many machines, without a central server",
		Long: `Lightswarm is a peer-to-peer network that trains AI agents with reinforcement learning. Rollout nodes run agents
against the newest policy and tell others what happened; a learner turns it into better weights and sends them back.

Start with a whole network on this machine:

  lightswarm testnet

Every command prints its result to standard output and everything else to standard error; with --json the result is
JSON, whose fields are only ever added to. Settings of nodes come from config.toml in the data folder, then variables
such as LIGHTSWARM_LOG_LEVEL, then flags; the last one wins.

` + exitHelp(),
		SilenceUsage:     true,
		SilenceErrors:    true,
		PersistentPreRun: func(*cobra.Command, []string) { p.started = true },
	}
	c.PersistentFlags().BoolVar(&p.json, "json", false, "print the result as JSON")
	c.SetOut(p.out)
	c.SetErr(p.err)
	c.AddCommand(p.testnet(), p.experiment(), p.network(), p.learn(), p.join(), p.status(), p.ledger(), p.bundle(), p.policy(), p.env(), p.runModule(), p.version())
	p.finish(c)
	version := c.Flags().BoolP("version", "v", false, "print the program's version")
	group := c.RunE
	c.RunE = func(c *cobra.Command, words []string) error {
		if !*version {
			return group(c, words)
		}
		return p.printVersion(func(w io.Writer, _ *versionResult) { fmt.Fprintln(w, versionLine()) })
	}
	return c
}

// print writes a result: v as a line of JSON if --json was given, else text. Much of it may be other people's text, which is
// not to reach a terminal as it is.
func (p *program) print(v any, text func(io.Writer)) error {
	var b bytes.Buffer
	if !p.json {
		text(&b)
		_, err := io.WriteString(p.out, protocol.Harmless(b.String()))
		return err
	}
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false) // tokens such as <|call|> stay readable
	if err := encoder.Encode(v); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	_, err := io.WriteString(p.out, escapeJSON(b.String()))
	return err
}

// escapeJSON is a line of JSON in which what a terminal might take for a command, or that changes the direction of text, is
// escaped: the encoder leaves much of that as it is.
func escapeJSON(line string) string {
	var b strings.Builder
	for _, c := range line {
		if c == '\n' || unicode.IsGraphic(c) {
			b.WriteRune(c)
			continue
		}
		for _, unit := range utf16.Encode([]rune{c}) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}
