package openenv

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"strings"

	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/rollout/env/protocol"
)

// Episode is one execution of a task on a server. It implements env.Episode.
type Episode struct {
	e        *Environment
	s        *session
	messages []chat.Message
	last     object // the last observation
	done     bool
	total    float64
	reward   *float64 // the last one, nil if there was none
	failed   error    // why the episode is of no more use
}

// fault ends the episode for something that the server, or whoever described it, did wrong.
func (p *Episode) fault(reason protocol.Reason, format string, arguments ...any) error {
	p.failed = &protocol.Failure{Reason: reason, Detail: fmt.Sprintf(format, arguments...)}
	return p.failed
}

// start makes the agent's beginning of the reply to a reset.
func (p *Episode) start(r reply) error {
	if err := p.take(sendReset, r); err != nil {
		return err
	}
	p.total, p.reward = 0, nil // nothing was done yet that could be rewarded
	for _, path := range p.e.spec.Observe {
		if !r.observation.has(path) && len(p.e.spec.Observe) == 1 {
			return p.fault(protocol.ReasonAnswer, "reset: the observation has no %q, which is what the agent is to see; it is %s", path, describe(r.observation))
		}
	}
	seen := p.e.spec.show(r.observation)
	if seen == "" {
		return p.fault(protocol.ReasonAnswer, "reset: there is nothing for the agent to see in the observation, which is %s: name fields of it in observe", describe(r.observation))
	}
	if p.e.spec.Prompt != "" {
		p.messages = append(p.messages, chat.Message{Role: chat.System, Content: p.e.spec.Prompt})
	}
	p.messages = append(p.messages, chat.Message{Role: chat.User, Content: seen})
	return nil
}

// describe is an observation in an error.
func describe(o object) string {
	all, err := marshal(o)
	if err != nil {
		return "not JSON"
	}
	return protocol.Clip([]byte(all))
}

// take takes in what a step, or the reset, came to.
func (p *Episode) take(op string, r reply) error {
	switch {
	case r.trouble != nil:
		f := r.trouble.failure()
		return p.fault(f.Reason, "%s: %s", op, f.Detail)
	case r.observation == nil:
		return p.fault(protocol.ReasonAnswer, "%s: the server answers with its state", op)
	}
	p.last, p.done = r.observation, r.done
	if r.reward != nil {
		p.reward = r.reward
		p.total += *r.reward
	}
	return nil
}

// ask sends a message of the episode.
func (p *Episode) ask(ctx context.Context, m message) (reply, error) {
	if p.failed != nil {
		return reply{}, p.failed
	}
	var r reply
	r, p.failed = p.s.ask(ctx, m)
	var full *busy // which only makes sense at the beginning
	if errors.As(p.failed, &full) {
		p.failed = full.trouble.failure()
	}
	return r, p.failed
}

// Messages implements env.Episode.
func (p *Episode) Messages() []chat.Message { return p.messages }

// Tools implements env.Episode.
func (p *Episode) Tools() []chat.Tool { return p.e.tools }

// Call implements env.Episode: it takes a step.
func (p *Episode) Call(ctx context.Context, name, arguments string) (string, error) {
	if p.failed != nil {
		return "", p.failed
	}
	known := false
	for _, t := range p.e.tools {
		known = known || t.Name == name
	}
	if !known {
		return "error: there is no such tool", nil
	}
	if p.done {
		return endedText, nil
	}
	given, wrong := given(arguments)
	if wrong != "" {
		return "error: " + wrong, nil
	}
	ours := p.e.ours[name]
	if ours == nil {
		return p.callServer(ctx, name, given)
	}
	action := maps.Clone(ours.action)
	if action == nil {
		action = map[string]any{}
	}
	if why := ours.form.refuse(given); why != "" {
		return "error: " + why, nil
	}
	for field, value := range given {
		action[field] = value
	}
	r, err := p.ask(ctx, message{sendStep, action})
	if err != nil {
		return "", err
	}
	if r.trouble != nil && r.trouble.blames(ours.form.takes) {
		return "error: " + r.trouble.String(), nil
	}
	if err := p.take(sendStep, r); err != nil {
		return "", err
	}
	return p.result(p.e.spec.show(r.observation)), nil
}

// callServer calls one of the server's tools.
func (p *Episode) callServer(ctx context.Context, name string, arguments any) (string, error) {
	r, err := p.ask(ctx, message{sendStep, map[string]any{"type": "call_tool", "tool_name": name, "arguments": arguments}})
	if err != nil {
		return "", err
	}
	if err := p.take(sendStep, r); err != nil {
		return "", err
	}
	c, ok := toolResult(r.observation)
	switch {
	case c.broken != "":
		return "", p.fault(protocol.ReasonReported, "step: the server cannot reach its tool %s: %s", name, protocol.Clip([]byte(c.broken)))
	case !ok:
		c.text = p.e.spec.show(r.observation)
	}
	return p.result(c.text), nil
}

// result is a tool's result, which also says if it was the last one.
func (p *Episode) result(text string) string {
	if p.done {
		return strings.TrimPrefix(text+"\n", "\n") + endedText
	}
	return text
}

// Score implements env.Episode: it sends the answer, if it goes anywhere and the server has not ended the episode, and
// returns what the steps were given.
func (p *Episode) Score(ctx context.Context, answer string) (env.Score, error) {
	if p.failed != nil {
		return env.Score{}, p.failed
	}
	m := p.e.m
	over := p.done
	if a := p.e.spec.Answer; a != nil && !p.done {
		over = true
		refused, err := p.answer(ctx, a, answer)
		if err != nil {
			return env.Score{}, err
		}
		if refused {
			return env.Score{Reward: m.RewardMin}, nil
		}
	}
	if over && p.reward == nil {
		return env.Score{}, p.fault(protocol.ReasonAnswer, "the server gave no reward in an episode that has ended: it has to judge at least the last step; its last observation is %s", describe(p.last))
	}
	value := p.total
	if p.e.spec.Reward == RewardLast && p.reward != nil {
		value = *p.reward
	}
	s := env.Score{Reward: float32(value)}
	if !(s.Reward >= m.RewardMin && s.Reward <= m.RewardMax) {
		return env.Score{}, p.fault(protocol.ReasonAnswer, "reward %v is outside the manifest's range, %v to %v", value, m.RewardMin, m.RewardMax)
	}
	var err error
	s.Components, err = p.components(ctx)
	return s, err
}

// answer sends the final answer. It is refused if it is no valid action.
func (p *Episode) answer(ctx context.Context, a *Answer, answer string) (refused bool, err error) {
	action := maps.Clone(a.Action)
	if action == nil {
		action = map[string]any{}
	}
	action[a.Field] = answer
	if a.Tool != "" {
		_, err := p.callServer(ctx, a.Tool, action)
		return false, err
	}
	r, err := p.ask(ctx, message{sendStep, action})
	if err != nil {
		return false, err
	}
	if r.trouble != nil && r.trouble.blames(func(field string) bool { return field == a.Field }) {
		return true, nil
	}
	return false, p.take(sendStep, r)
}

// components are the numbers that explain the reward. What is none is left out.
func (p *Episode) components(ctx context.Context) (map[string]float32, error) {
	var state object
	components := map[string]float32{}
	for _, path := range p.e.spec.Components {
		value := p.last.at(path)
		if inner, ok := strings.CutPrefix(path, "state."); ok {
			if state == nil {
				r, err := p.ask(ctx, message{Type: sendState})
				switch {
				case err != nil:
					return nil, err
				case r.trouble != nil:
					f := r.trouble.failure()
					return nil, p.fault(f.Reason, "state: %s", f.Detail)
				case r.state == nil:
					return nil, p.fault(protocol.ReasonAnswer, "state: the server answers with an observation")
				}
				state = r.state
			}
			value = state.at(inner)
		}
		var number float64
		if json.Unmarshal(value, &number) == nil && !math.IsInf(float64(float32(number)), 0) && string(value) != "" {
			components[path] = float32(number)
		}
	}
	if len(components) == 0 {
		return nil, nil
	}
	return components, nil
}

// Close implements env.Episode. It does not wait: the episode keeps its seat until the server has let go of it.
func (p *Episode) Close() error {
	p.s.close()
	return nil
}
