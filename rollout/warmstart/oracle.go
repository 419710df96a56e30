package warmstart

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/rollout/agent"
	"github.com/lightswarm/lightswarm/rollout/env"
)

// oracle is the agent.LLM of a demonstration: what an agent asks is answered by the task's environment, and kept. The first
// call that cannot be answered ends the demonstration. It is safe for concurrent use; one call is answered at a time.
//
// Its completions have no tokens yet, for the tokenizer is made of what they say. A reply gets two in their place: its
// number, whose piece is all of the text, and an end. By the number a message of a later conversation is recognised as the
// one that was said, as a sampled one is by its tokens.
type oracle struct {
	episode  env.Episode
	habit    string
	maxCalls int
	forms    *forms
	// stop ends the agent's run.
	stop context.CancelCauseFunc

	mu     sync.Mutex
	calls  []call // guarded by mu
	failed error  // guarded by mu; why the demonstration is none
	ended  bool   // guarded by mu; it takes no more calls
}

// call is one call of an agent and its answer.
type call struct {
	role     string
	messages []chat.Message // without tokens
	tools    []chat.Tool
	said     chat.Message
}

// endToken stands for the end of a reply. It is no reply's number.
const endToken = -1

// Complete implements agent.LLM.
func (o *oracle) Complete(ctx context.Context, r agent.Request) (agent.Reply, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.failed != nil:
		return agent.Reply{}, o.failed
	case o.ended:
		return agent.Reply{}, agent.ErrEnded
	}
	if err := ctx.Err(); err != nil {
		return agent.Reply{}, fmt.Errorf("answer a call: %w", err)
	}
	c := call{role: r.Agent, messages: o.recognise(r.Messages), tools: r.Tools}
	if len(r.Prompt) == 0 && r.Text == "" {
		// Of a conversation that no prompt can be made of, the agent hears in a rollout too.
		if _, err := o.forms.template.Render(c.messages, c.tools); err != nil {
			return agent.Reply{}, fmt.Errorf("render a call: %w", err)
		}
	}
	switch err := o.answer(ctx, r, &c); {
	case err != nil && ctx.Err() != nil:
		return agent.Reply{}, fmt.Errorf("answer a call: %w", context.Cause(ctx)) // the run has ended, by no fault of the call
	case err != nil:
		o.failed = fmt.Errorf("call %d, as %s: %w", len(o.calls), r.Agent, err)
		o.stop(o.failed)
		return agent.Reply{}, o.failed
	}
	o.calls = append(o.calls, c)
	return o.reply(r, c), nil
}

// answer asks the environment what is to be said.
func (o *oracle) answer(ctx context.Context, r agent.Request, c *call) (err error) {
	switch {
	case len(o.calls) == o.maxCalls:
		return fmt.Errorf("%w: %d are allowed", ErrTooManyCalls, o.maxCalls)
	case len(r.Prompt) > 0 || r.Text != "":
		return errors.New("the agent has a text continued (Completions API), and environments answer conversations")
	}
	q := env.Question{Role: r.Agent, Messages: c.messages, Habit: o.habit}
	for _, t := range r.Tools {
		q.Tools = append(q.Tools, t.Name)
	}
	if c.said, err = env.Reply(ctx, o.episode, q); err != nil {
		return err
	}
	for _, t := range c.said.ToolCalls {
		if !slices.Contains(q.Tools, t.Name) {
			offers := "none"
			if len(q.Tools) > 0 {
				offers = strings.Join(q.Tools, ", ")
			}
			return fmt.Errorf("the environment's reply calls the tool %q; the call offers %s", t.Name, offers)
		}
	}
	if r.Grammar != nil {
		c.said, err = o.forms.fit(r.Grammar, c.said)
	}
	return err
}

// reply is what the agent gets of an answer.
func (o *oracle) reply(r agent.Request, c call) agent.Reply {
	said := c.said
	said.Tokens = []int32{int32(len(o.calls)) - 1, endToken}
	return agent.Reply{
		Message:     said,
		Call:        len(o.calls) - 1,
		LogProbs:    make([]float32, len(said.Tokens)),
		Pieces:      []string{said.Content, ""},
		Constrained: r.Grammar != nil,
	}
}

// recognise is a conversation in which the messages that were replies say exactly what those said, which is what a policy's
// next prompt would be made of, and none has tokens.
func (o *oracle) recognise(conversation []chat.Message) []chat.Message {
	out := slices.Clone(conversation)
	for i, m := range out {
		if len(m.Tokens) == 2 && m.Tokens[1] == endToken {
			said := o.calls[m.Tokens[0]].said
			m.Content = said.Content
			m.ToolCalls = slices.Clone(m.ToolCalls)
			for k := range m.ToolCalls { // the ids are the agent's
				m.ToolCalls[k].Name, m.ToolCalls[k].Arguments = said.ToolCalls[k].Name, said.ToolCalls[k].Arguments
			}
			m.Tokens = nil
			out[i] = m
		}
	}
	return out
}

// finish lets no more calls begin, and returns those that there were, by number, and why the demonstration is none.
func (o *oracle) finish() ([]call, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	return o.calls, o.failed
}
