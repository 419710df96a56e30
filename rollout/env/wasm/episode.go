package wasm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/wire"
)

// Limits on what a module answers.
const (
	maxMessages = 64
	maxTools    = 64
)

// request is a line to the module.
type request struct {
	Op        string          `json:"op"`
	Split     *string         `json:"split,omitempty"`
	Index     *uint64         `json:"index,omitempty"`
	Task      json.RawMessage `json:"task,omitempty"`
	Name      *string         `json:"name,omitempty"`
	Arguments *string         `json:"arguments,omitempty"`
	Answer    *string         `json:"answer,omitempty"`
}

// episode is one instance. It implements env.Episode and env.Solver.
type episode struct {
	environment *Environment
	child       *child
	id          uint32
	seat        *seat

	messages []chat.Message
	tools    []chat.Tool
	failed   error // why the episode is of no more use
}

// ask sends a request and reads its answer into one of the structs below.
func (p *episode) ask(ctx context.Context, r request, answer any) error {
	if p.failed != nil {
		return p.failed
	}
	p.failed = p.tryAsk(ctx, r, answer)
	return p.failed
}

func (p *episode) tryAsk(ctx context.Context, r request, answer any) error {
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(r); err != nil {
		return fmt.Errorf("%s: %w", r.Op, err)
	}
	body := bytes.TrimSuffix(line.Bytes(), []byte{'\n'})
	if len(body) > MaxAnswer {
		return &Failure{ReasonProtocol, fmt.Sprintf("%s: a request of %d bytes; at most %d are sent", r.Op, len(body), MaxAnswer)}
	}
	said, used, err := p.child.request(ctx, p.id, p.seat, body)
	if err != nil {
		var f *Failure
		if errors.As(err, &f) {
			return &Failure{f.Reason, r.Op + ": " + f.Detail}
		}
		return err
	}
	p.environment.used(used)
	var report struct {
		Error *string `json:"error"`
	}
	if json.Unmarshal(said, &report) == nil && report.Error != nil {
		return &Failure{ReasonReported, fmt.Sprintf("%s: it reports: %s", r.Op, clip([]byte(*report.Error)))}
	}
	decoder := json.NewDecoder(bytes.NewReader(said))
	decoder.DisallowUnknownFields()
	err = decoder.Decode(answer)
	if err == nil {
		if _, more := decoder.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("there is more after it")
		}
	}
	if err != nil {
		return &Failure{ReasonAnswer, fmt.Sprintf("%s: its answer %q is not the JSON that was wanted: %v", r.Op, clip(said), err)}
	}
	return nil
}

// wrong is an answer that does not do.
func (p *episode) wrong(op, format string, arguments ...any) error {
	p.failed = &Failure{ReasonAnswer, op + ": " + fmt.Sprintf(format, arguments...)}
	return p.failed
}

func (p *episode) reset(ctx context.Context, split string, index uint64) error {
	const op = "reset"
	var opening struct {
		Messages []struct {
			Role    string  `json:"role"`
			Content *string `json:"content"`
		} `json:"messages"`
		Tools []struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Parameters  json.RawMessage `json:"parameters"`
		} `json:"tools"`
	}
	r := request{Op: op, Split: &split, Index: &index, Task: p.environment.p.Task(split, index)}
	if err := p.ask(ctx, r, &opening); err != nil {
		return err
	}
	if n := len(opening.Messages); n == 0 || n > maxMessages {
		return p.wrong(op, "it has %d messages; 1 to %d are wanted", n, maxMessages)
	}
	for i, m := range opening.Messages {
		role := chat.Role(m.Role)
		switch {
		case m.Content == nil:
			return p.wrong(op, "messages[%d] has no content", i)
		case role != chat.System && role != chat.User && role != chat.Assistant:
			return p.wrong(op, "messages[%d].role is %q; it must be system, user or assistant", i, clip([]byte(m.Role)))
		case i == len(opening.Messages)-1 && role != chat.User:
			return p.wrong(op, "messages[%d].role is %q; the last one must be user: it is the task", i, m.Role)
		}
		p.messages = append(p.messages, chat.Message{Role: role, Content: *m.Content})
	}
	if n := len(opening.Tools); n > maxTools {
		return p.wrong(op, "it has %d tools; at most %d are allowed", n, maxTools)
	}
	seen := map[string]bool{}
	for i, t := range opening.Tools {
		var parameters map[string]json.RawMessage
		switch {
		case !chat.ValidToolName(t.Name):
			return p.wrong(op, "tools[%d].name %q cannot be a tool's: use letters, digits, _ and -", i, clip([]byte(t.Name)))
		case seen[t.Name]:
			return p.wrong(op, "tools[%d].name %q is there twice", i, t.Name)
		case json.Unmarshal(t.Parameters, &parameters) != nil || parameters == nil:
			return p.wrong(op, "tools[%d].parameters must be an object: a JSON schema", i)
		case len(t.Parameters) > chat.MaxParameters:
			return p.wrong(op, "tools[%d].parameters have %d bytes; at most %d are allowed", i, len(t.Parameters), chat.MaxParameters)
		}
		seen[t.Name] = true
		p.tools = append(p.tools, chat.Tool{Name: t.Name, Description: t.Description, Parameters: string(t.Parameters)})
	}
	return nil
}

// Messages implements env.Episode.
func (p *episode) Messages() []chat.Message { return p.messages }

// Tools implements env.Episode.
func (p *episode) Tools() []chat.Tool { return p.tools }

// Call implements env.Episode.
func (p *episode) Call(ctx context.Context, name, arguments string) (string, error) {
	const op = "call"
	var result struct {
		Result *string `json:"result"`
	}
	if err := p.ask(ctx, request{Op: op, Name: &name, Arguments: &arguments}, &result); err != nil {
		return "", err
	}
	if result.Result == nil {
		return "", p.wrong(op, "its answer has no result")
	}
	return *result.Result, nil
}

// Score implements env.Episode.
func (p *episode) Score(ctx context.Context, answer string) (env.Score, error) {
	const op = "score"
	var score struct {
		Reward     *float64           `json:"reward"`
		Components map[string]float64 `json:"components"`
	}
	if err := p.ask(ctx, request{Op: op, Answer: &answer}, &score); err != nil {
		return env.Score{}, err
	}
	if score.Reward == nil {
		return env.Score{}, p.wrong(op, "its answer has no reward")
	}
	m := p.environment.m
	s := env.Score{Reward: float32(*score.Reward)}
	if !(s.Reward >= m.RewardMin && s.Reward <= m.RewardMax) {
		return env.Score{}, p.wrong(op, "reward %v is outside the manifest's range, %v to %v", s.Reward, m.RewardMin, m.RewardMax)
	}
	if len(score.Components) > wire.MaxComponents {
		return env.Score{}, p.wrong(op, "%d components; at most %d are allowed", len(score.Components), wire.MaxComponents)
	}
	for name, value := range score.Components {
		v := float32(value)
		if name == "" || len(name) > wire.MaxComponentName || math.IsInf(float64(v), 0) {
			return env.Score{}, p.wrong(op, "component %q is %v; a name has 1 to %d bytes, and a value fits 32 bits", clip([]byte(name)), value, wire.MaxComponentName)
		}
		if s.Components == nil {
			s.Components = make(map[string]float32)
		}
		s.Components[name] = v
	}
	return s, nil
}

// Solve implements env.Solver.
func (p *episode) Solve(ctx context.Context) (env.Solution, error) {
	const op = "solve"
	var solution struct {
		Calls []struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"calls"`
		Answer *string `json:"answer"`
	}
	if err := p.ask(ctx, request{Op: op}, &solution); err != nil {
		return env.Solution{}, err
	}
	if solution.Answer == nil {
		return env.Solution{}, p.wrong(op, "its answer has no answer")
	}
	s := env.Solution{Answer: *solution.Answer}
	for _, c := range solution.Calls {
		s.Calls = append(s.Calls, chat.ToolCall{Name: c.Name, Arguments: c.Arguments})
	}
	return s, nil
}

// Close implements env.Episode.
func (p *episode) Close() error {
	p.child.end(p.id)
	return nil
}
