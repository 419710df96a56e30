package main

import (
	"fmt"
	"math"
	"os"

	"github.com/spf13/cobra"

	"github.com/lightswarm/lightswarm/rollout/process/module"
)

// runModule is the process in which an agent that is a WebAssembly module is compiled, or runs. Nobody but this program
// starts it.
func (p *program) runModule() *cobra.Command {
	return &cobra.Command{
		Use:                "module compile|run FOLDER MODULE [ARGUMENT...]",
		Hidden:             true,
		DisableFlagParsing: true, // they are the module's
		Args:               takes(3, math.MaxInt),
		RunE: func(_ *cobra.Command, arguments []string) error {
			status, err := module.Work(arguments, os.Environ())
			if err != nil {
				fmt.Fprintln(p.err, err) // as itself: a status may also mean something of a command
			}
			if status != 0 {
				return &exitError{code: status}
			}
			return nil
		},
	}
}

// moduleCommand starts such a process, ahead of its arguments.
func moduleCommand() ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	return []string{self, "module"}, nil
}
