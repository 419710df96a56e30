package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/policy/grammar"
	"github.com/lightswarm/lightswarm/rollout/env"
)

// Request is one call of an agent to its policy.
type Request struct {
	// Agent is the name of the role that calls.
	Agent string
	// Messages is the conversation so far, Tools what the policy may call.
	Messages []chat.Message
	Tools    []chat.Tool
	// Prompt, token ids, or else Text takes the place of Messages and Tools if it is not empty: the policy continues
	// it, without a chat template around it.
	Prompt []int32
	Text   string
	// Grammar, if it is not nil, is what the completion has to be by. Where the engine cannot sample within one it is left
	// out: see Reply.
	Grammar *grammar.Grammar
	// Asked is what the agent wants of sampling, as bundle.Call says: at most 512 bytes of printable text on one line. The
	// network's rules hold; it is recorded and changes nothing.
	Asked string
}

// Reply is what the policy made of a call.
type Reply struct {
	// Message is the assistant's, with the exact Tokens. Of a completion that is no message, that was cut, or that
	// continues a text, its Content is the completion's text, as far as it goes.
	Message chat.Message
	// Call is the call's number within the rollout, from 0 on; no other reply has it.
	Call int
	// Prompt is what was sampled from, LogProbs and Pieces are the log-prob and the bytes of each of Message.Tokens.
	Prompt   []int32
	LogProbs []float32
	Pieces   []string
	// Constrained says that the completion was sampled within the request's Grammar.
	Constrained bool
}

// LLM answers an agent's calls. It is safe for concurrent use: calls are numbered in the order in which they begin,
// and what is sampled depends on the number. An agent that is to be a function of its draw begins its calls in order.
type LLM interface {
	// Complete blocks until the policy has answered. With ErrMalformed, and with ErrCut unless it is ErrNoRoom, the
	// reply is complete as well. These and ErrExhausted, possibly wrapped, are what the policy or the rules bring
	// about; chat.ErrConversation and ErrEnded are the agent's doing. Any other error is a failure of the machinery.
	Complete(ctx context.Context, r Request) (Reply, error)
}

// What Complete reports about a policy's conduct and the rules.
var (
	// ErrMalformed says that the completion is no message.
	ErrMalformed = errors.New("the completion is not a well-formed message")
	// ErrCut says that the completion, or the conversation before it, reached a token limit.
	ErrCut = errors.New("the completion was cut at its token limit")
	// ErrNoRoom is the ErrCut of a conversation that leaves no room for a completion.
	ErrNoRoom = fmt.Errorf("%w: the conversation leaves no room for one", ErrCut)
	// ErrExhausted says that the rollout has used up its calls.
	ErrExhausted = errors.New("the rollout has used up its calls")
	// ErrEnded says that the rollout had ended before the call began.
	ErrEnded = errors.New("the rollout has ended")
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
	// Feedback is what else is said of the run, nil for nothing.
	Feedback *Feedback
}

// EnvironmentError is a failure of the environment, or of what is to start the agent.
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
	checker, checks := e.(env.ToolChecker)
	var feedback *Feedback // stays nil if nothing is checked
	for {
		reply, err := llm.Complete(ctx, Request{Agent: a.Role, Messages: messages, Tools: tools})
		switch {
		case errors.Is(err, ErrMalformed):
			return Result{End: Malformed, Feedback: feedback}, nil
		case errors.Is(err, ErrCut):
			return Result{End: Cut, Feedback: feedback}, nil
		case errors.Is(err, ErrExhausted):
			return Result{End: Exhausted, Feedback: feedback}, nil
		case err != nil:
			return Result{}, err
		}
		said := reply.Message
		if len(said.ToolCalls) == 0 {
			return Result{End: Answered, Answer: said.Content, Feedback: feedback}, nil
		}
		messages = append(messages[:len(messages):len(messages)], said)
		for _, call := range said.ToolCalls {
			var result string
			var failed bool
			if checks {
				result, failed, err = checker.CallChecked(ctx, call.Name, call.Arguments)
			} else {
				result, err = e.Call(ctx, call.Name, call.Arguments)
			}
			if err != nil {
				return Result{}, &EnvironmentError{Err: err}
			}
			if checks {
				if feedback == nil {
					feedback = &Feedback{}
				}
				feedback.Tools = append(feedback.Tools, ToolOutcome{Call: reply.Call, Tool: call.Name, Failed: failed})
			}
			messages = append(messages, chat.Message{Role: chat.ToolRole, Content: result, ToolCallID: call.ID})
		}
	}
}
