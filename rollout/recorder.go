package rollout

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/lightswarm/lightswarm/policy"
	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/rollout/agent"
	"github.com/lightswarm/lightswarm/wire"
	"github.com/lightswarm/lightswarm/wire/bundle"
)

// recorder is the agent.LLM of one rollout: it renders, samples, parses, and keeps every call. It is safe for
// concurrent use.
//
// A call takes its number, and with it its sampling key, when it begins: the lowest that is free. One that fails gives
// its number back, so that the calls of a rollout are numbered without a gap, as whoever verifies them expects.
type recorder struct {
	policy    *Policy
	sampling  policy.Sampling
	maxTokens int
	maxCalls  int
	key       func(call uint32) policy.SampleKey

	// rendering is held while a prompt is made. An agent may send conversations that are far too long, many at once: one
	// after the other they take little memory, and when the rollout is over those that are left are not looked at.
	rendering sync.Mutex
	running   sync.WaitGroup // calls that began
	mu        sync.Mutex
	slots     []slot // guarded by mu; by number, at most maxCalls
	ended     bool   // guarded by mu
}

// slot is a call's number: free, taken by a call that runs, or recorded.
type slot struct {
	taken bool
	call  *bundle.Call
	err   error // why the last call of this number failed
}

// Complete implements agent.LLM.
func (r *recorder) Complete(ctx context.Context, q agent.Request) (agent.Reply, error) {
	prompt, err := r.prompt(ctx, q)
	if err != nil {
		return agent.Reply{}, err
	}
	number, err := r.begin()
	if err != nil {
		return agent.Reply{}, err
	}
	if _, can := r.policy.Session.(policy.Constrainer); !can {
		q.Grammar = nil
	}
	completion, err := r.policy.Session.Generate(ctx, policy.Request{
		Prompt:    prompt,
		MaxTokens: r.maxTokens,
		Stop:      r.policy.Stop,
		Sampling:  r.sampling,
		Key:       r.key(uint32(number)),
		Grammar:   q.Grammar,
	})
	switch {
	case errors.Is(err, policy.ErrPromptTooLong):
		r.end(number, slot{})
		return agent.Reply{}, agent.ErrNoRoom
	case err != nil:
		err = &engineError{fmt.Errorf("call %d: %w", number, err)}
		r.end(number, slot{err: err})
		return agent.Reply{}, err
	}
	call := &bundle.Call{
		Agent:      q.Agent,
		Prompt:     prompt,
		Completion: completion.Tokens,
		LogProbs:   completion.LogProbs,
		Finish:     uint8(completion.Finish),
		Asked:      q.Asked,
	}
	if q.Grammar != nil {
		call.Grammar = q.Grammar.Bytes()
	}
	r.end(number, slot{taken: true, call: call})
	return r.reply(q, number, prompt, completion)
}

// prompt is what a call samples from.
func (r *recorder) prompt(ctx context.Context, q agent.Request) (prompt []int32, err error) {
	r.rendering.Lock()
	defer r.rendering.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("render a call: %w", err)
	}
	switch {
	case len(q.Prompt) > 0 || q.Text != "":
		if prompt = q.Prompt; len(prompt) == 0 {
			prompt = r.policy.Template.Continue(q.Text)
		}
		err = r.policy.Template.CheckPrompt(prompt)
	default:
		prompt, err = r.policy.Template.Render(q.Messages, q.Tools)
	}
	if err != nil {
		return nil, fmt.Errorf("render a call: %w", err)
	}
	// A prompt that the engine would refuse must not take a number: the calls that begin meanwhile have later ones.
	if len(prompt) > wire.MaxTokensPerCall || r.policy.Context > 0 && len(prompt) >= r.policy.Context {
		return nil, agent.ErrNoRoom
	}
	return prompt, nil
}

// begin takes a number. Whoever has it calls end.
func (r *recorder) begin() (number int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return 0, agent.ErrEnded
	}
	for number < len(r.slots) && r.slots[number].taken {
		number++
	}
	if number == r.maxCalls {
		return 0, agent.ErrExhausted
	}
	if number == len(r.slots) {
		r.slots = append(r.slots, slot{})
	}
	r.slots[number].taken = true
	r.running.Add(1)
	return number, nil
}

// end says what became of a number.
func (r *recorder) end(number int, s slot) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.slots[number] = s
	r.running.Done()
}

// finish lets no more calls begin, waits for those that run, and returns all that were recorded, by number. Calls
// behind a number that stayed free are left out: their keys would not be those of their places. The error is the
// engine's failure in that number: an agent may have gone on in spite of it, but its rollout says nothing.
func (r *recorder) finish() (calls []bundle.Call, err error) {
	r.mu.Lock()
	r.ended = true
	r.mu.Unlock()
	r.running.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.slots {
		if s.call == nil {
			return calls, s.err
		}
		calls = append(calls, *s.call)
	}
	return calls, nil
}

// reply is what the agent gets of a completion.
func (r *recorder) reply(q agent.Request, number int, prompt []int32, c policy.Completion) (agent.Reply, error) {
	message, err := r.policy.Template.Parse(c.Tokens)
	reply := agent.Reply{
		Message:  message,
		Call:     number,
		Prompt:   prompt,
		LogProbs: c.LogProbs,
		Pieces:   r.policy.Template.Pieces(c.Tokens),

		Constrained: q.Grammar != nil,
	}
	if len(q.Prompt) > 0 || q.Text != "" {
		reply.Message = continuation(reply, c.Finish)
		err = nil
	}
	switch {
	case c.Finish == policy.FinishLength:
		return reply, agent.ErrCut
	case err != nil:
		return reply, fmt.Errorf("%w: %w", agent.ErrMalformed, err)
	}
	// The message keeps the sampled ids (Tokens), so that later prompts continue with exactly those.
	return reply, nil
}

// continuation is a completion as nothing but text, without the token that stopped it.
func continuation(r agent.Reply, finish policy.FinishReason) chat.Message {
	pieces := r.Pieces
	if finish == policy.FinishStop {
		pieces = pieces[:len(pieces)-1]
	}
	text := strings.ToValidUTF8(strings.Join(pieces, ""), "\uFFFD")
	return chat.Message{Role: chat.Assistant, Content: text, Tokens: r.Message.Tokens}
}

// engineError is a failure of the policy engine.
type engineError struct{ err error }

func (e *engineError) Error() string { return e.err.Error() }
func (e *engineError) Unwrap() error { return e.err }
