package rollout

import (
	"context"
	"errors"
	"fmt"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/rollout/agent"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
)

// recorder is the agent.LLM of one rollout: it renders, samples, parses, and keeps every call.
type recorder struct {
	policy    *Policy
	sampling  policy.Sampling
	maxTokens int
	maxCalls  int
	key       func(call uint32) policy.SampleKey
	calls     []bundle.Call
}

// Complete implements agent.LLM.
func (r *recorder) Complete(ctx context.Context, q agent.Request) (chat.Message, error) {
	if len(r.calls) == r.maxCalls {
		return chat.Message{}, agent.ErrExhausted
	}
	prompt, err := r.policy.Template.Render(q.Messages, q.Tools)
	if err != nil {
		return chat.Message{}, fmt.Errorf("render call %d: %w", len(r.calls), err)
	}
	if len(prompt) > wire.MaxTokensPerCall {
		return chat.Message{}, agent.ErrCut
	}
	completion, err := r.policy.Session.Generate(ctx, policy.Request{
		Prompt:    prompt,
		MaxTokens: r.maxTokens,
		Stop:      r.policy.Stop,
		Sampling:  r.sampling,
		Key:       r.key(uint32(len(r.calls))),
	})
	if errors.Is(err, policy.ErrPromptTooLong) {
		return chat.Message{}, agent.ErrCut
	}
	if err != nil {
		return chat.Message{}, &engineError{fmt.Errorf("call %d: %w", len(r.calls), err)}
	}
	r.calls = append(r.calls, bundle.Call{
		Agent:      q.Agent,
		Prompt:     prompt,
		Completion: completion.Tokens,
		LogProbs:   completion.LogProbs,
		Finish:     uint8(completion.Finish),
	})
	if completion.Finish == policy.FinishLength {
		return chat.Message{}, agent.ErrCut
	}
	message, err := r.policy.Template.Parse(completion.Tokens)
	if err != nil {
		return chat.Message{}, fmt.Errorf("%w: %w", agent.ErrMalformed, err)
	}
	// The message keeps the sampled ids (Tokens), so that later prompts continue with exactly those.
	return message, nil
}

// engineError is a failure of the policy engine.
type engineError struct{ err error }

func (e *engineError) Error() string { return e.err.Error() }
func (e *engineError) Unwrap() error { return e.err }
