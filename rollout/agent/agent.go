package agent

import (
	"context"
	"errors"

	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/rollout/env"
)

// Request is one call of an agent to its policy.
type Request struct {
	// Agent is the name of the role that calls.
	Agent string
	// Messages is the conversation so far, Tools what the policy may call.
	Messages []chat.Message
	Tools    []chat.Tool
}

// LLM answers an agent's calls. Within one rollout it is used by one goroutine.
type LLM interface {
	// Complete blocks until the policy has answered. It returns ErrMalformed, ErrCut or ErrExhausted, possibly
	// wrapped, for what the policy or the rules bring about; any other error is a failure of the machinery.
	Complete(ctx context.Context, r Request) (chat.Message, error)
}

// What Complete reports about a policy's conduct.
var (
	// ErrMalformed says that the completion is no message.
	ErrMalformed = errors.New("the completion is not a well-formed message")
	// ErrCut says that the completion, or the conversation before it, reached a token limit.
	ErrCut = errors.New("the completion was cut at its token limit")
	// ErrExhausted says that the rollout has used up its calls.
	ErrExhausted = errors.New("the rollout has used up its calls")
)

// End says how a run ended.
type End uint8

// The ends of a run; see the package comment.
const (
	Answered End = iota + 1
	Malformed
	Cut
	Exhausted
)

// Result is a run that came to an end.
type Result struct {
	End End
	// Answer is the final answer; empty unless Answered.
	Answer string
}

// EnvironmentError is a failure of the environment.
type EnvironmentError struct{ Err error }

func (e *EnvironmentError) Error() string { return "environment: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *EnvironmentError) Unwrap() error { return e.Err }

// Agent solves a task. It is safe for concurrent use.
type Agent interface {
	// Run plays one episode. Its errors are described in the package comment.
	Run(ctx context.Context, llm LLM, e env.Episode) (Result, error)
}

// ToolLoop is the built-in agent: it asks the policy, runs the tools that the policy calls, adds their results to the
// conversation and asks again, until the policy answers in text.
type ToolLoop struct {
	// Role names the agent in its calls.
	Role string
}

// Run implements Agent. The LLM bounds how often it can ask, the chat template how many tools one message can call.
func (a ToolLoop) Run(ctx context.Context, llm LLM, e env.Episode) (Result, error) {
	messages, tools := e.Messages(), e.Tools()
	for {
		reply, err := llm.Complete(ctx, Request{Agent: a.Role, Messages: messages, Tools: tools})
		switch {
		case errors.Is(err, ErrMalformed):
			return Result{End: Malformed}, nil
		case errors.Is(err, ErrCut):
			return Result{End: Cut}, nil
		case errors.Is(err, ErrExhausted):
			return Result{End: Exhausted}, nil
		case err != nil:
			return Result{}, err
		}
		if len(reply.ToolCalls) == 0 {
			return Result{End: Answered, Answer: reply.Content}, nil
		}
		messages = append(messages[:len(messages):len(messages)], reply)
		for _, call := range reply.ToolCalls {
			result, err := e.Call(ctx, call.Name, call.Arguments)
			if err != nil {
				return Result{}, &EnvironmentError{Err: err}
			}
			messages = append(messages, chat.Message{Role: chat.ToolRole, Content: result, ToolCallID: call.ID})
		}
	}
}
