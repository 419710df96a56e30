package protocol

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Reason says in which way an environment failed. Reasons are stable.
type Reason string

// The reasons.
const (
	// ReasonSteps: a request took more steps than the manifest allows.
	ReasonSteps Reason = "steps"
	// ReasonDepth: calls were nested too deeply.
	ReasonDepth Reason = "depth"
	// ReasonTrap: an instruction failed, such as an access outside memory or a division by zero.
	ReasonTrap Reason = "trap"
	// ReasonTime: a request took longer than the manifest allows.
	ReasonTime Reason = "time"
	// ReasonThreads: a program had more threads than it may have.
	ReasonThreads Reason = "threads"
	// ReasonFiles: a program's files took more room than they may.
	ReasonFiles Reason = "files"
	// ReasonExit: the environment ended before it had answered.
	ReasonExit Reason = "exit"
	// ReasonOutput: an answer was too long, or there were too many messages.
	ReasonOutput Reason = "output"
	// ReasonProtocol: what the environment wrote or read is not as the protocol has it.
	ReasonProtocol Reason = "protocol"
	// ReasonAnswer: an answer is not what its request wants, or breaks what the manifest promises.
	ReasonAnswer Reason = "answer"
	// ReasonReported: the environment itself said that it failed.
	ReasonReported Reason = "reported"
	// ReasonProcess: the child process ended or hung, or could not be started.
	ReasonProcess Reason = "process"
	// ReasonServer: the server cannot be reached, has no place for an episode or ended it.
	ReasonServer Reason = "server"
)

// Failure is what an environment did wrong. The outcome of its rollout is env_error.
type Failure struct {
	Reason Reason
	// Detail says it for people: what happened, in which request, and what the author can do.
	Detail string
}

func (f *Failure) Error() string { return f.Detail }

// MaxComplaints is how much of the end of an environment's standard error is kept, in bytes.
const MaxComplaints = 2 << 10

// Complaints keeps the end of what an environment writes to its standard error. It is for one goroutine at a time.
type Complaints struct{ kept []byte }

// Write implements io.Writer; it never fails.
func (c *Complaints) Write(b []byte) (int, error) {
	c.kept = append(c.kept, b[max(0, len(b)-MaxComplaints):]...)
	if over := len(c.kept) - MaxComplaints; over > 0 {
		c.kept = c.kept[:copy(c.kept, c.kept[over:])]
	}
	return len(b), nil
}

// String is what was kept, as text.
func (c *Complaints) String() string {
	return strings.TrimSpace(Harmless(string(c.kept)))
}

// Clip shortens what an environment wrote before it enters an error.
func Clip(b []byte) string {
	const most = 120
	if len(b) > most {
		return Harmless(string(b[:most])) + "…"
	}
	return Harmless(string(b))
}

// Harmless is a text that an environment wrote, for people: with U+FFFD in place of all that a terminal might take for a
// command, or that changes the direction of what is around it. Lines and tabs stay.
func Harmless(s string) string {
	return strings.Map(func(c rune) rune {
		if c == '\n' || c == '\t' || unicode.IsGraphic(c) {
			return c
		}
		return utf8.RuneError
	}, strings.ToValidUTF8(s, "\uFFFD"))
}
