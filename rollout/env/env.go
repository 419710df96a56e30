package env

import (
	"context"

	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/wire"
)

// Environment is tasks, tools and scoring. It is safe for concurrent use. One that holds processes or files is also an
// io.Closer: see Close.
type Environment interface {
	// Manifest describes the environment; the caller does not change it.
	Manifest() wire.EnvironmentManifest
	// Reset starts one execution of task index of a split. It is pure: the same arguments, the same task.
	Reset(ctx context.Context, split string, index uint64) (Episode, error)
}

// Episode is one execution of one task. It is used by one goroutine.
type Episode interface {
	// Messages is the conversation that the agent starts from.
	Messages() []chat.Message
	// Tools is what the agent may call, the same all through the episode.
	Tools() []chat.Tool
	// Call runs a tool. A tool that dislikes its arguments answers with text that says so; an error means that
	// the environment itself failed.
	Call(ctx context.Context, name, arguments string) (string, error)
	// Score judges the agent's final answer.
	Score(ctx context.Context, answer string) (Score, error)
	// Close frees what the episode holds. It is called once, after everything else, also when that failed.
	Close() error
}

// Score is a judgement within the manifest's reward range.
type Score struct {
	Reward float32
	// Components explain the reward, by name.
	Components map[string]float32
}

// ToolChecker is an Episode that can tell the tool calls that worked from those that did not, so that its environment can
// reward them (wire.ToolReward).
type ToolChecker interface {
	// CallChecked is Call, and says whether the tool failed: it answers with text all the same.
	CallChecked(ctx context.Context, name, arguments string) (result string, failed bool, err error)
}
