package warmstart

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/policy/pretrain"
	"github.com/lightswarm/lightswarm/rollout/agent"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/wire"
)

// ErrSlow says that a run of the agent takes longer than Options.Timeout.
var ErrSlow = errors.New("the agent takes longer than a rollout may")

// record has the agent solve the episode's task, or get it wrong in the way of a habit, and returns what its calls and their
// answers teach.
func (s source) record(ctx context.Context, e env.Episode, habit string) (pretrain.Demonstration, error) {
	run, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if s.timeout > 0 {
		var cancel context.CancelFunc
		run, cancel = context.WithTimeoutCause(run, s.timeout, fmt.Errorf("%w: %s", ErrSlow, s.timeout))
		defer cancel()
	}
	o := &oracle{episode: e, habit: habit, maxCalls: s.maxCalls, forms: s.forms, stop: stop}
	result, err := s.agent.Run(run, o, e)
	calls, failed := o.finish()
	switch {
	case failed != nil:
		return nil, failed
	case err == nil && len(calls) == 0:
		return nil, errors.New("the agent made no call: does it use OPENAI_BASE_URL and OPENAI_API_KEY?")
	case err == nil && result.End != agent.Answered:
		err = errors.New("the agent came to no answer")
	}
	m := s.environment.Manifest()
	if result.Feedback != nil {
		name(m, calls, result.Feedback)
	}
	if err == nil && habit == "" {
		err = s.judge(ctx, e, result)
	}
	if err != nil {
		return nil, fmt.Errorf("%w; before that it %s", err, made(calls))
	}
	return conversations(calls, s.teaches), nil
}

// name gives calls the roles that telemetry says, as rollouts are recorded.
func name(m wire.EnvironmentManifest, calls []call, f *agent.Feedback) {
	for i := range calls {
		if role := f.Calls[i].Agent; slices.Contains(m.Agents, role) {
			calls[i].role = role
		}
	}
}

// judge is an error if the agent's answer does not get the largest reward.
func (s source) judge(ctx context.Context, e env.Episode, r agent.Result) error {
	m := s.environment.Manifest()
	score, err := e.Score(ctx, r.Answer)
	if err != nil {
		return err
	}
	reward := score.Reward
	if f := r.Feedback; m.AgentRewards&wire.AgentRewardFinal != 0 && f != nil && f.Reward != nil {
		reward = min(float32(*f.Reward), m.RewardMax)
	}
	if reward != m.RewardMax {
		return fmt.Errorf("with the environment's replies the agent answers %q and gets %v, and the largest reward is %v", clip(r.Answer), reward, m.RewardMax)
	}
	return nil
}

// clip shortens an answer before it enters an error.
func clip(text string) string {
	const most = 120
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "\uFFFD") + "…"
	}
	return text
}

// made says in words what calls an agent made.
func made(calls []call) string {
	if len(calls) == 0 {
		return "made no call"
	}
	roles := make([]string, len(calls))
	for i, c := range calls {
		roles[i] = c.role
	}
	return "made these calls: " + strings.Join(roles, ", ")
}

// conversations joins calls to conversations: one whose messages begin with all of an earlier conversation of its role, what
// the policy answered included, continues that. Their order is that of what they say and offer: calls that run at once are
// numbered as they come, which is to change nothing.
func conversations(calls []call, teaches func(role string) bool) (d pretrain.Demonstration) {
	for _, c := range calls {
		i := slices.IndexFunc(d, func(earlier pretrain.Conversation) bool {
			return earlier.Role == c.role && slices.Equal(earlier.Tools, c.tools) &&
				len(earlier.Messages) <= len(c.messages) && slices.EqualFunc(earlier.Messages, c.messages[:len(earlier.Messages)], alike)
		})
		if i < 0 {
			i = len(d)
			d = append(d, pretrain.Conversation{Role: c.role, Tools: c.tools, Untaught: !teaches(c.role)})
		}
		d[i].Said = append(d[i].Said, len(c.messages))
		d[i].Messages = append(slices.Clip(c.messages), c.said)
	}
	slices.SortStableFunc(d, func(a, b pretrain.Conversation) int {
		return cmp.Or(
			strings.Compare(a.Role, b.Role), slices.CompareFunc(a.Messages, b.Messages, order),
			slices.CompareFunc(a.Tools, b.Tools, orderOfTools), slices.Compare(a.Said, b.Said),
		)
	})
	return d
}

// order compares what two messages say.
func order(a, b chat.Message) int {
	return cmp.Or(
		strings.Compare(string(a.Role), string(b.Role)), strings.Compare(a.Content, b.Content),
		slices.CompareFunc(a.ToolCalls, b.ToolCalls, func(x, y chat.ToolCall) int {
			return cmp.Or(strings.Compare(x.Name, y.Name), strings.Compare(x.Arguments, y.Arguments))
		}))
}

// orderOfTools compares two tools that prompts offer.
func orderOfTools(a, b chat.Tool) int {
	return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Description, b.Description), strings.Compare(a.Parameters, b.Parameters))
}

// alike says whether two messages make the same part of a prompt. Ids of calls are the agent's.
func alike(a, b chat.Message) bool {
	return a.Role == b.Role && a.Content == b.Content && a.ToolCallID == b.ToolCallID &&
		slices.EqualFunc(a.ToolCalls, b.ToolCalls, func(x, y chat.ToolCall) bool { return x.Name == y.Name && x.Arguments == y.Arguments })
}
