package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// The exit codes of every command. Scripts may rely on them.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitNoNode      = 3
	exitTarget      = 4
	exitInterrupted = 130
)

// exitMeanings is what the help says of exit codes.
var exitMeanings = []struct {
	code    int
	meaning string
}{
	{exitOK, "it worked; for a node: it was stopped in order"},
	{exitFailed, "it failed; standard error says why and what to do"},
	{exitUsage, "a flag, argument, setting or variable is wrong, or names what does not suit; nothing was begun"},
	{exitNoNode, "no node runs on the data folder"},
	{exitTarget, "the testnet did not reach its target"},
	{exitInterrupted, "an interrupt (Ctrl-C, or a signal to stop) ended work that was not done; to a node it is a good end, 0"},
}

// exitHelp is the table as text.
func exitHelp() string {
	var b strings.Builder
	b.WriteString("Exit codes:\n")
	for _, e := range exitMeanings {
		fmt.Fprintf(&b, "  %-4d %s\n", e.code, e.meaning)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// exitError is an error with its own exit code. An empty text is not printed: the command has said what there is to say.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// usage marks an error as the user's: a wrong flag, argument or setting.
func usage(err error) error {
	if err == nil {
		return nil
	}
	return &exitError{exitUsage, err}
}

// errInterrupted is the cause of a context that a signal ended.
var errInterrupted = errors.New("interrupted")

// exitCode is the code of a command's error.
func exitCode(err error) int {
	var coded *exitError
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &coded):
		return coded.code
	case errors.Is(err, errInterrupted) || errors.Is(err, context.Canceled):
		return exitInterrupted
	}
	return exitFailed
}
