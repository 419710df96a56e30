package protocol

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/lightswarm/lightswarm/policy/chat"
	"github.com/lightswarm/lightswarm/rollout/env"
	"github.com/lightswarm/lightswarm/wire"
)

// Limits on what an environment answers.
const (
	// MaxLine bounds a request and an answer, in bytes.
	MaxLine     = 1 << 20
	maxMessages = 64
	maxTools    = 64
)

// request is a line to the environment.
type request struct {
	Op        string          `json:"op"`
	Split     *string         `json:"split,omitempty"`
	Index     *uint64         `json:"index,omitempty"`
	Task      json.RawMessage `json:"task,omitempty"`
	Name      *string         `json:"name,omitempty"`
	Arguments *string         `json:"arguments,omitempty"`
	Answer    *string         `json:"answer,omitempty"`
	Habit     *string         `json:"habit,omitempty"`
	Role      *string         `json:"role,omitempty"`
	Messages  *[]message      `json:"messages,omitempty"`
	Tools     *[]string       `json:"tools,omitempty"`
}

// call is a tool call, and message one of a conversation, as they are written.
type (
	call struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
	message struct {
		Role    chat.Role `json:"role"`
		Content string    `json:"content"`
		Calls   []call    `json:"calls"`
	}
)

// Port is the environment's side of one episode: it reads lines and answers each with one.
type Port interface {
	// Ask sends a request, without a line end, and returns the answer. After an error nothing more is asked. What the
	// environment did wrong is a *Failure.
	Ask(ctx context.Context, line []byte) ([]byte, error)
	// Close ends it. It is called once, after everything else.
	Close() error
}

// Episode is an execution that speaks the protocol. It implements env.Episode, env.Habitual and env.Replier.
type Episode struct {
	port     Port
	manifest wire.EnvironmentManifest
	messages []chat.Message
	tools    []chat.Tool
	failed   error // why the episode is of no more use
}

// CheckTask is an error if an environment has no such task.
func CheckTask(m wire.EnvironmentManifest, split string, index uint64) error {
	switch n := m.Tasks(split); {
	case n == 0:
		return fmt.Errorf("%s: no split %q", m.Name, split)
	case index >= n:
		return fmt.Errorf("%s: task %d of split %q, which has %d", m.Name, index, split, n)
	}
	return nil
}

// Begin starts a task of a package on a port, which it owns from then on, also if it fails.
func Begin(ctx context.Context, port Port, p *env.Package, split string, index uint64) (*Episode, error) {
	e := &Episode{port: port, manifest: p.Manifest()}
	if err := e.reset(ctx, split, index, p.Task(split, index)); err != nil {
		return nil, errors.Join(err, port.Close())
	}
	return e, nil
}

// ask sends a request and reads its answer into one of the structs below.
func (p *Episode) ask(ctx context.Context, r request, answer any) error {
	if p.failed != nil {
		return p.failed
	}
	p.failed = p.tryAsk(ctx, r, answer)
	return p.failed
}

func (p *Episode) tryAsk(ctx context.Context, r request, answer any) error {
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(r); err != nil {
		return fmt.Errorf("%s: %w", r.Op, err)
	}
	body := bytes.TrimSuffix(line.Bytes(), []byte{'\n'})
	if len(body) > MaxLine {
		return &Failure{ReasonProtocol, fmt.Sprintf("%s: a request of %d bytes; at most %d are sent", r.Op, len(body), MaxLine)}
	}
	said, err := p.port.Ask(ctx, body)
	if err != nil {
		var f *Failure
		if errors.As(err, &f) {
			return &Failure{f.Reason, r.Op + ": " + f.Detail}
		}
		return err
	}
	if !utf8.Valid(said) {
		return &Failure{ReasonAnswer, r.Op + ": its answer is not UTF-8"}
	}
	var report struct {
		Error *string `json:"error"`
	}
	if json.Unmarshal(said, &report) == nil && report.Error != nil {
		return &Failure{ReasonReported, fmt.Sprintf("%s: it reports: %s", r.Op, Clip([]byte(*report.Error)))}
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
		return &Failure{ReasonAnswer, fmt.Sprintf("%s: its answer %q is not the JSON that was wanted: %v", r.Op, Clip(said), err)}
	}
	return nil
}

// wrong is an answer that does not do.
func (p *Episode) wrong(op, format string, arguments ...any) error {
	p.failed = &Failure{ReasonAnswer, op + ": " + fmt.Sprintf(format, arguments...)}
	return p.failed
}

func (p *Episode) reset(ctx context.Context, split string, index uint64, task json.RawMessage) error {
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
	r := request{Op: op, Split: &split, Index: &index, Task: task}
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
			return p.wrong(op, "messages[%d].role is %q; it must be system, user or assistant", i, Clip([]byte(m.Role)))
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
			return p.wrong(op, "tools[%d].name %q cannot be a tool's: use letters, digits, _ and -", i, Clip([]byte(t.Name)))
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
func (p *Episode) Messages() []chat.Message { return p.messages }

// Tools implements env.Episode.
func (p *Episode) Tools() []chat.Tool { return p.tools }

// Call implements env.Episode.
func (p *Episode) Call(ctx context.Context, name, arguments string) (string, error) {
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
func (p *Episode) Score(ctx context.Context, answer string) (env.Score, error) {
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
	m := p.manifest
	s := env.Score{Reward: float32(*score.Reward)}
	if !(s.Reward >= m.RewardMin && s.Reward <= m.RewardMax) {
		return env.Score{}, p.wrong(op, "reward %v is outside the manifest's range, %v to %v", s.Reward, m.RewardMin, m.RewardMax)
	}
	if len(score.Components) > wire.MaxComponents {
		return env.Score{}, p.wrong(op, "%d components; at most %d are allowed", len(score.Components), wire.MaxComponents)
	}
	for name, value := range score.Components {
		v := float32(value)
		unprintable := strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsPrint(c) })
		if name == "" || len(name) > wire.MaxComponentName || unprintable || math.IsInf(float64(v), 0) {
			return env.Score{}, p.wrong(op, "component %q is %v; a name has 1 to %d bytes that are printable, and a value fits 32 bits", Clip([]byte(name)), value, wire.MaxComponentName)
		}
		if s.Components == nil {
			s.Components = make(map[string]float32)
		}
		s.Components[name] = v
	}
	return s, nil
}

// Solve implements env.Solver.
func (p *Episode) Solve(ctx context.Context) (env.Solution, error) { return p.solve(ctx, nil) }

// SolveBy implements env.Habitual.
func (p *Episode) SolveBy(ctx context.Context, habit string) (env.Solution, error) {
	return p.solve(ctx, &habit)
}

func (p *Episode) solve(ctx context.Context, habit *string) (env.Solution, error) {
	const op = "solve"
	var solution struct {
		Calls  []call   `json:"calls"`
		Answer *string  `json:"answer"`
		Habits []string `json:"habits"`
	}
	if err := p.ask(ctx, request{Op: op, Habit: habit}, &solution); err != nil {
		return env.Solution{}, err
	}
	unsolved := solution.Answer == nil
	if unsolved && (habit != nil || solution.Habits == nil || len(solution.Calls) > 0) {
		return env.Solution{}, p.wrong(op, "its answer has no answer")
	}
	if n := len(solution.Habits); n > env.MaxHabits {
		return env.Solution{}, p.wrong(op, "it names %d habits; at most %d are allowed", n, env.MaxHabits)
	}
	for i, name := range solution.Habits {
		if name == "" || len(name) > env.MaxHabitName {
			return env.Solution{}, p.wrong(op, "habits[%d] is %q; a name has 1 to %d bytes", i, Clip([]byte(name)), env.MaxHabitName)
		}
	}
	s := env.Solution{Habits: solution.Habits, Unsolved: unsolved}
	if !unsolved {
		s.Answer = *solution.Answer
	}
	for _, c := range solution.Calls {
		s.Calls = append(s.Calls, chat.ToolCall{Name: c.Name, Arguments: c.Arguments})
	}
	return s, nil
}

// Reply implements env.Replier.
func (p *Episode) Reply(ctx context.Context, q env.Question) (chat.Message, error) {
	const op = "reply"
	messages, tools := make([]message, 0, len(q.Messages)), append([]string{}, q.Tools...)
	r := request{Op: op, Role: &q.Role, Messages: &messages, Tools: &tools}
	if q.Habit != "" {
		r.Habit = &q.Habit
	}
	for _, m := range q.Messages {
		calls := make([]call, 0, len(m.ToolCalls))
		for _, c := range m.ToolCalls {
			calls = append(calls, call{c.Name, c.Arguments})
		}
		messages = append(messages, message{m.Role, m.Content, calls})
	}
	var reply struct {
		Content *string `json:"content"`
		Calls   []call  `json:"calls"`
	}
	if err := p.ask(ctx, r, &reply); err != nil {
		return chat.Message{}, err
	}
	if reply.Content == nil && len(reply.Calls) == 0 {
		return chat.Message{}, p.wrong(op, "its answer has neither content nor calls")
	}
	if n := len(reply.Calls); n > chat.MaxToolCalls {
		return chat.Message{}, p.wrong(op, "it has %d calls; at most %d are allowed", n, chat.MaxToolCalls)
	}
	said := chat.Message{Role: chat.Assistant}
	if reply.Content != nil {
		said.Content = *reply.Content
	}
	for i, c := range reply.Calls {
		if !chat.ValidToolName(c.Name) {
			return chat.Message{}, p.wrong(op, "calls[%d].name %q cannot be a tool's: use letters, digits, _ and -", i, Clip([]byte(c.Name)))
		}
		said.ToolCalls = append(said.ToolCalls, chat.ToolCall{ID: fmt.Sprintf("call_%d", i), Name: c.Name, Arguments: c.Arguments})
	}
	return said, nil
}

// Close implements env.Episode.
func (p *Episode) Close() error { return p.port.Close() }
