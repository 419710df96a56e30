package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// endWithInput gives a node's command the hidden flag --end-with-input, for programs that run nodes as processes of
// theirs: standard input is then a pipe that the parent holds open, whose end says that the parent is gone, however it
// ended. The node stops in order, as if interrupted. An interrupt alone it leaves to the parent, because a terminal sends
// Ctrl-C to both and the parent knows in which order nodes end.
func endWithInput(c *cobra.Command) {
	on := false
	c.Flags().BoolVar(&on, "end-with-input", false, "stop when standard input ends, and on no interrupt: for a parent process")
	if err := c.Flags().MarkHidden("end-with-input"); err != nil {
		panic(err) // the flag was added above
	}
	run := c.RunE
	c.RunE = func(cmd *cobra.Command, arguments []string) error {
		if !on {
			return run(cmd, arguments)
		}
		// What is written to a parent that is gone is an error, and does not end the process out of order.
		signal.Ignore(os.Interrupt, syscall.SIGPIPE)
		ctx, cancel := context.WithCancelCause(cmd.Context())
		defer cancel(nil)
		// A read from a pipe cannot be ended from here, so this ends with the process.
		go func() {
			io.Copy(io.Discard, os.Stdin) //nolint:errcheck // an input that cannot be read has ended too
			cancel(errInterrupted)
		}()
		cmd.SetContext(ctx)
		return run(cmd, arguments)
	}
}
